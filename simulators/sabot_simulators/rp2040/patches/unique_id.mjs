// The flash chip's unique id, by which a board knows itself. The emulator's flash interface answers nothing but the
// status that the boot code asks for: unpatched, every board's id is zeros.
const SSI = 0x18000;
const DATA = 0x60;
const READ_UNIQUE_ID = 0x4b;
const DUMMIES = 5; // the command itself and four bytes more
const SIZE = 8;

export class UniqueId {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = -1; // how much of the command was exchanged, -1 outside of it
    this.answers = [];
  }

  exchange(byte) {
    if (this.at < 0 && byte !== READ_UNIQUE_ID) return;
    this.at++;
    this.answers.push(this.at < DUMMIES ? 0 : this.bytes[this.at - DUMMIES]);
    if (this.at === DUMMIES + SIZE - 1) this.at = -1;
  }
}

export function patchUniqueId(mcu, pico) {
  const ssi = mcu.peripherals[SSI];
  const read = ssi.readUint32;
  const write = ssi.writeUint32;
  ssi.readUint32 = function (offset) {
    if (offset === DATA && pico.uniqueId.answers.length) return pico.uniqueId.answers.shift();
    return read.call(this, offset);
  };
  ssi.writeUint32 = function (offset, value) {
    if (offset === DATA) pico.uniqueId.exchange(value);
    write.call(this, offset, value);
  };
}
