// A character display of two lines on I2C (ST7032 and alike): a control byte says whether commands or text follow.
const TEXT = 0x40;
const ADDRESS = 0x80; // a command: where the next character goes
const SECOND_LINE = 0x40;
const CLEAR = 0x01;
const WIDTH = 20;

export class Display {
  constructor(onShown) {
    this.onShown = onShown;
    this.cutPower();
  }

  cutPower() {
    this.lines = [' '.repeat(WIDTH), ' '.repeat(WIDTH)];
    this.at = 0;
    this.control = null;
    this.changed = false;
  }

  connect() {
    this.control = null;
  }

  write(byte) {
    if (this.control === null) {
      this.control = byte;
    } else if (this.control & TEXT) {
      const line = this.at & SECOND_LINE ? 1 : 0;
      const column = this.at & (SECOND_LINE - 1);
      const text = this.lines[line];
      if (column < WIDTH) this.lines[line] = text.slice(0, column) + String.fromCharCode(byte) + text.slice(column + 1);
      this.at++;
      this.changed = true;
    } else if (byte & ADDRESS) {
      this.at = byte & 0x7f;
    } else if (byte === CLEAR) {
      this.cutPower();
      this.changed = true;
    }
  }

  read() {
    return 0;
  }

  stop() {
    if (this.changed) {
      this.changed = false;
      this.onShown(this.lines);
    }
  }
}
