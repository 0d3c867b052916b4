// A 16-bit I/O expander (MCP23017): directions, polarity, interrupt on change, output latches.
const IODIR = 0x00;
const IPOL = 0x02;
const GPINTEN = 0x04;
const INTF = 0x0e;
const INTCAP = 0x10;
const GPIO = 0x12;
const OLAT = 0x14;
const REGISTERS = 0x16;

export class Expander {
  constructor(onInterrupt, onOutputs) {
    this.onInterrupt = onInterrupt;
    this.onOutputs = onOutputs;
    this.inputs = 0;
    this.absent = false; // a fault: it does not answer
    this.cutPower();
  }

  cutPower() {
    this.registers = new Uint8Array(REGISTERS);
    this.registers[IODIR] = this.registers[IODIR + 1] = 0xff;
    this.pointer = 0;
    this.first = false;
    this.seen = this.inputs;
    this.outputs = 0;
    this.asserted = false;
  }

  word(register) {
    return this.registers[register] | (this.registers[register + 1] << 8);
  }

  connect(reading) {
    this.first = !reading;
  }

  write(byte) {
    if (this.first) {
      this.first = false;
      this.pointer = byte % REGISTERS;
      return;
    }
    const at = this.pointer;
    this.pointer = (at + 1) % REGISTERS;
    const low = at & ~1;
    if (low === INTF || low === INTCAP) return;
    this.registers[low === GPIO ? at - GPIO + OLAT : at] = byte;
    this.drive();
    if (low === GPINTEN) this.sense();
  }

  read() {
    const at = this.pointer;
    this.pointer = (at + 1) % REGISTERS;
    const high = at & 1 ? 8 : 0;
    if ((at & ~1) === GPIO) {
      const mask = 0xff << high;
      this.seen = (this.seen & ~mask) | (this.inputs & mask);
      this.registers[INTF + (at & 1)] = 0;
      this.update();
      const inputs = (this.inputs ^ this.word(IPOL)) & this.word(IODIR);
      return ((inputs | (this.word(OLAT) & ~this.word(IODIR))) >> high) & 0xff;
    }
    return this.registers[at];
  }

  stop() {}

  set(inputs) {
    this.inputs = inputs;
    this.sense();
  }

  sense() {
    const changed = (this.inputs ^ this.seen) & this.word(GPINTEN) & this.word(IODIR);
    this.registers[INTF] |= changed & 0xff;
    this.registers[INTF + 1] |= changed >> 8;
    this.update();
  }

  update() {
    const asserted = this.word(INTF) !== 0;
    if (asserted === this.asserted) return;
    this.asserted = asserted;
    this.onInterrupt();
  }

  drive() {
    const outputs = this.word(OLAT) & ~this.word(IODIR) & 0xffff;
    if (outputs === this.outputs) return;
    this.outputs = outputs;
    this.onOutputs(outputs);
  }
}
