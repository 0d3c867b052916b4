// The UART's transmit interrupt is raised when a byte has gone, not held for ever. Unpatched it is a level that
// nothing lowers, and firmware that writes through a buffer never leaves its interrupt.
const DATA = 0;
const TRANSMITTED = 1 << 5;

export function patchUartEdge(mcu) {
  for (const uart of mcu.uart) {
    uart.checkInterrupts = function () {
      this.rp2040.setInterrupt(this.irq, !!(this.interruptStatus & this.interruptMask));
    };
    const write = uart.writeUint32;
    uart.writeUint32 = function (offset, value) {
      write.call(this, offset, value);
      if (offset === DATA) {
        this.interruptStatus |= TRANSMITTED;
        this.checkInterrupts();
      }
    };
  }
}
