// A PWM slice asks the DMA for one transfer each time it wraps. Unpatched, the first wrap leaves the request
// standing, and a whole table of step times is written at once. The transfer comes after the wrap: what it writes
// counts from the next one on.
const FIRST = 24; // DREQ_PWM_WRAP0
const LAST = 31;
const TRANSFER_NANOS = 64;

export function patchPwmRequest(mcu) {
  const { dma } = mcu;
  for (const channel of dma.channels) {
    channel.scheduleTransfer = function () {
      const request = this.treqValue;
      if (request >= FIRST && request <= LAST) return; // waits for a wrap
      Object.getPrototypeOf(this).scheduleTransfer.call(this);
    };
  }
  const setDREQ = dma.setDREQ;
  dma.setDREQ = function (request) {
    if (request < FIRST || request > LAST) {
      setDREQ.call(this, request);
      return;
    }
    const waiting = this.channels.filter((channel) => channel.treqValue === request && channel.active);
    for (const channel of waiting) channel.transferAlarm.schedule(TRANSFER_NANOS);
  };
}
