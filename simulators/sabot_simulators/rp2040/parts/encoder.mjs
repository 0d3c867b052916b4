// A roller's encoder on the B input of a PWM slice that counts rising edges. Its pulses are not made one by one:
// the count is reckoned from the roller's speed when the register is read.
const COUNTER = 0x08;
const DIVIDER_MODE = 0x30;
const RISING_EDGES = 0x20;
const ENABLED = 0x01;

export class Encoder {
  constructor(pico) {
    this.pico = pico;
    this.set(0, 0, 0);
  }

  set(micros, count, perMicro) {
    this.origin = micros;
    this.count = count;
    this.perMicro = perMicro;
  }

  now() {
    return Math.floor(this.count + this.perMicro * (this.pico.nanos() / 1e3 - this.origin));
  }

  attach(slice) {
    const read = slice.readRegister;
    slice.readRegister = (offset) => {
      const counts = slice.csr & ENABLED && (slice.csr & DIVIDER_MODE) === RISING_EDGES;
      return offset === COUNTER && counts ? this.now() & 0xffff : read.call(slice, offset);
    };
  }
}
