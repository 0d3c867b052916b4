// A 32 KB FRAM on SPI (MB85RS256 and alike): every byte is kept as soon as it has arrived.
const WRITE_ENABLE = 0x06;
const WRITE_DISABLE = 0x04;
const READ_STATUS = 0x05;
const READ = 0x03;
const WRITE = 0x02;
const WRITABLE = 0x02;
export const FRAM_SIZE = 32768;

export class Fram {
  constructor() {
    this.cells = new Uint8Array(FRAM_SIZE);
    this.absent = false; // a fault: it does not answer
    this.deaf = false; // a fault: it takes no writes and does not say so
    this.writes = 0;
    this.cutPower();
  }

  cutPower() {
    this.selected = false;
    this.writable = false;
    this.command = 0;
    this.count = 0;
    this.address = 0;
  }

  select(on) {
    if (!on && this.command === WRITE) this.writable = false;
    this.selected = on;
    this.command = 0;
    this.count = 0;
  }

  exchange(byte) {
    if (!this.selected || this.absent) return 0xff;
    const n = this.count++;
    if (n === 0) {
      this.command = byte;
      if (byte === WRITE_ENABLE) this.writable = true;
      if (byte === WRITE_DISABLE) this.writable = false;
      return 0xff;
    }
    if (this.command === READ_STATUS) return this.writable ? WRITABLE : 0;
    if (n < 3) {
      this.address = (n === 1 ? byte << 8 : this.address | byte) & (FRAM_SIZE - 1);
      return 0xff;
    }
    const at = this.address;
    this.address = (at + 1) & (FRAM_SIZE - 1);
    if (this.command === WRITE && this.writable && !this.deaf) {
      this.cells[at] = byte;
      this.writes++;
    }
    return this.command === READ ? this.cells[at] : 0xff;
  }
}
