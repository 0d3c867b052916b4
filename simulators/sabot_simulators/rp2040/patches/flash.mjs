// Flash that can be written. The boot ROM's flash functions drive the flash chip's interface, which the emulator
// does not have: unpatched, writing the file system fails with OSError 28. Here their entries are breakpoints; the
// work is done by the chip below, and the processor stands still for as long as a real chip is busy.
const FUNCTIONS = ['IF', 'EX', 'FC', 'CX', 'RE', 'RP']; // connect, exit XIP, flush, enter XIP, erase, program
const ERASE = 4;
const PROGRAM = 5;
const FIRST_CODE = 0x50;
const BREAKPOINT = 0xbe00;
const RETURN = 0x4770;
const TABLE_POINTER = 0x14;
const SRAM = 0x20000000;

export function patchFlash(mcu, pico) {
  const rom = new Uint16Array(mcu.bootrom.buffer, mcu.bootrom.byteOffset, mcu.bootrom.length * 2);
  const entries = {};
  for (let at = rom[TABLE_POINTER >> 1] >> 1; rom[at]; at += 2) {
    entries[String.fromCharCode(rom[at] & 255, rom[at] >> 8)] = (rom[at + 1] & ~1) >> 1;
  }
  FUNCTIONS.forEach((name, n) => {
    rom[entries[name]] = BREAKPOINT | (FIRST_CODE + n);
    rom[entries[name] + 1] = RETURN;
  });
  mcu.onBreak = (code) => {
    const [first, second, third] = mcu.core.registers;
    if (code === FIRST_CODE + ERASE) {
      pico.flash.erase(first, second);
    } else if (code === FIRST_CODE + PROGRAM) {
      pico.flash.program(first, mcu.sram.slice(second - SRAM, second - SRAM + third));
    }
  };
}
