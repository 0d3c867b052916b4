// The I2C bus: the parts on it by address, and a bit of time for every bit.
const START_NANOS = 3e3;
const BITS = 9;
const BIT_NANOS = 2.5e3; // 400 kHz

export class I2cBus {
  constructor(controller, clock, parts) {
    this.controller = controller;
    this.parts = parts;
    this.part = null;
    this.todo = null;
    this.alarm = clock.createAlarm(() => this.done());
    controller.onStart = () => this.later('start', 0, START_NANOS);
    controller.onConnect = (address, mode) => {
      const part = this.parts[address] ?? null;
      this.part = part?.absent ? null : part;
      if (this.part) this.part.connect(mode === 1);
      this.later('connect', this.part !== null, BITS * BIT_NANOS);
    };
    controller.onWriteByte = (byte) => {
      this.part.write(byte);
      this.later('write', 0, BITS * BIT_NANOS);
    };
    controller.onReadByte = () => this.later('read', 0, BITS * BIT_NANOS);
    controller.onStop = () => {
      if (this.part) this.part.stop();
      this.part = null;
      this.later('stop', 0, START_NANOS);
    };
  }

  later(what, value, nanos) {
    this.todo = [what, value];
    this.alarm.schedule(nanos);
  }

  done() {
    const [what, value] = this.todo;
    if (what === 'start') this.controller.completeStart();
    else if (what === 'connect') this.controller.completeConnect(value);
    else if (what === 'write') this.controller.completeWrite(true);
    else if (what === 'read') this.controller.completeRead(this.part ? this.part.read() : 0xff);
    else this.controller.completeStop();
  }
}
