// The second cable: bytes to and from a UART at its own pace. What the device says is told in pieces, not byte by byte.
const BYTE_NANOS = 1e10 / 115200;
const PIECE_NANOS = 1e6;

export class SerialCable {
  constructor(uart, clock, onSaid) {
    this.toDevice = [];
    this.said = [];
    this.saidAt = 0; // when the first of it came
    this.feeding = clock.createAlarm(() => this.feed(uart));
    this.piece = clock.createAlarm(onSaid);
    uart.onByte = (byte) => {
      if (!this.said.length) {
        this.saidAt = clock.nanos;
        this.piece.schedule(PIECE_NANOS);
      }
      this.said.push(byte);
    };
  }

  send(bytes) {
    this.toDevice.push(...bytes);
    if (!this.feeding.scheduled) this.feeding.schedule(BYTE_NANOS);
  }

  feed(uart) {
    this.feeding.scheduled = false;
    uart.feedByte(this.toDevice.shift());
    if (this.toDevice.length) this.feeding.schedule(BYTE_NANOS);
  }

  take() {
    const { said } = this;
    this.said = [];
    return said;
  }
}
