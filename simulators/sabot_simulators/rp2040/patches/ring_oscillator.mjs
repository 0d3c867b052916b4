// The ring oscillator's random bit. The emulator has no ring oscillator: unpatched, os.urandom gives the same
// bytes for ever. The bits are those of the simulated machine's, so that a seed gives the same shuffles wherever
// the firmware runs; they are sent in pieces, and more are asked for in time.
const ROSC = 0x40060;
const STATUS = 0x18;
const RANDOM_BIT = 0x1c;
const STABLE_AND_ENABLED = 0x81001000;
const LOW = 2048; // bytes: more than the firmware takes in one go

export class RingOscillator {
  constructor() {
    this.bytes = new Uint8Array(0);
    this.at = 0; // bits taken
    this.asked = false;
    this.stuck = null; // a fault: the bit it gives for ever
  }

  give(bytes) {
    this.bytes = Buffer.concat([this.bytes.subarray(this.at >>> 3), bytes]);
    this.at &= 7;
    this.asked = false;
  }

  bit(ask) {
    if (this.stuck !== null) return this.stuck;
    const { at } = this;
    if (!this.asked && this.bytes.length - (at >>> 3) < LOW) {
      this.asked = true;
      ask();
    }
    if (at >>> 3 >= this.bytes.length) throw new Error('the ring oscillator has no bits left');
    this.at += 1;
    return (this.bytes[at >>> 3] >>> (7 - (at & 7))) & 1;
  }
}

export function patchRingOscillator(mcu, pico) {
  mcu.peripherals[ROSC] = {
    readUint32(offset) {
      const register = offset & 0xfff;
      if (register === RANDOM_BIT) return pico.ringOscillator.bit(() => pico.tell('noise'));
      return register === STATUS ? STABLE_AND_ENABLED : 0;
    },
    writeUint32Atomic() {},
  };
}
