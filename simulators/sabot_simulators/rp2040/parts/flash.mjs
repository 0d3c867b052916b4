// The flash chip: erased by sectors, programmed by pages, busy meanwhile. A power cut leaves it half done.
const ERASE_NANOS = 45e6; // a sector
const PROGRAM_NANOS = 0.7e6; // a page
const SECTOR = 4096;
const PAGE = 256;

export class Flash {
  constructor(pico, cells) {
    this.pico = pico;
    this.cells = cells.fill(0xff);
    this.job = null;
    this.operations = 0;
  }

  erase(at, length) {
    this.begin(at, length, (length / SECTOR) * ERASE_NANOS);
    this.cells.fill(0xff, at, at + length);
  }

  program(at, bytes) {
    this.begin(at, bytes.length, (bytes.length / PAGE) * PROGRAM_NANOS);
    for (let i = 0; i < bytes.length; i++) this.cells[at + i] &= bytes[i];
  }

  begin(at, length, nanos) {
    this.job = { at, before: this.cells.slice(at, at + length), since: this.pico.nanos(), nanos };
    this.operations++;
    this.pico.stall(nanos);
  }

  cutPower() {
    const { job } = this;
    this.job = null;
    if (!job) return;
    const gone = this.pico.nanos() - job.since;
    if (gone >= job.nanos) return;
    const done = Math.floor((job.before.length * gone) / job.nanos);
    this.cells.set(job.before.subarray(done), job.at + done);
  }
}
