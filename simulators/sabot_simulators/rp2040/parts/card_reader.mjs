// The card reader below the exit, on I2C: one register, the number of the card it sees, 255 for none.
export class CardReader {
  constructor() {
    this.face = 255;
  }

  connect() {}
  write() {}
  stop() {}

  read() {
    return this.face;
  }
}
