// The processor as rp2040js emulates it: one instruction after the other. thumb_to_wasm/ is a faster replacement with
// the same interface: `ram`, `registers`, `rom` and `flash`, `boot`, `watch` and `run`.
const RAM_SIZE = 264 * 1024;
const ROM_SIZE = 0x4000;
const FLASH_SIZE = 2 << 20;

export class Interpreter {
  constructor() {
    this.ram = new Uint8Array(RAM_SIZE);
    this.registers = new Uint32Array(16);
    this.rom = new Uint32Array(ROM_SIZE / 4);
    this.flash = new Uint8Array(FLASH_SIZE);
    this.run = interpret;
  }

  // The controller starts.
  boot() {}

  // The interpreter passes every address: nothing is needed to watch one.
  watch() {}
}

// Executes one instruction; the cycles it took.
export function interpret(pico, core, clock) {
  pico.passes(core);
  const taken = core.executeInstruction();
  clock.nanosCounter += taken * pico.cycleNanos; // which the instruction may have changed
  if (clock.nextAlarm !== null && clock.nextAlarm.nanos <= clock.nanosCounter) clock.tick(0);
  return taken;
}
