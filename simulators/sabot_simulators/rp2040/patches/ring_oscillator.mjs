// The ring oscillator's random bit. The emulator has no ring oscillator: unpatched, os.urandom gives the same
// bytes for ever. From a seed the bits are the same in every run; a test can also make them bad.
const ROSC = 0x40060;
const STATUS = 0x18;
const RANDOM_BIT = 0x1c;
const STABLE_AND_ENABLED = 0x81001000;

export class RingOscillator {
  constructor(seed) {
    this.state = seed >>> 0 || 1;
    this.stuck = null; // a fault: the bit it gives for ever
  }

  bit() {
    if (this.stuck !== null) return this.stuck;
    let x = this.state; // xorshift32
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.state = x >>> 0;
    return (this.state >>> 7) & 1;
  }
}

export function patchRingOscillator(mcu, pico) {
  mcu.peripherals[ROSC] = {
    readUint32(offset) {
      const register = offset & 0xfff;
      if (register === RANDOM_BIT) return pico.ringOscillator.bit();
      return register === STATUS ? STABLE_AND_ENABLED : 0;
    },
    writeUint32Atomic() {},
  };
}
