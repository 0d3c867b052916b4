// The boot loader as an end of the run: a board that is told to start it is a drive from then on, which is not
// emulated. Unpatched, the boot ROM's own USB code would run against a host that knows only the firmware's ports.
const RESET_TO_USB = 'UB';
const CODE = 0x60;
const BREAKPOINT = 0xbe00;
const RETURN = 0x4770;
const TABLE_POINTER = 0x14;
const WATCHDOG = 0x40058;

export function patchBootLoader(mcu, pico) {
  const rom = new Uint16Array(mcu.bootrom.buffer, mcu.bootrom.byteOffset, mcu.bootrom.length * 2);
  for (let at = rom[TABLE_POINTER >> 1] >> 1; rom[at]; at += 2) {
    if (String.fromCharCode(rom[at] & 255, rom[at] >> 8) !== RESET_TO_USB) continue;
    const entry = (rom[at + 1] & ~1) >> 1;
    rom[entry] = BREAKPOINT | CODE;
    rom[entry + 1] = RETURN;
  }
  const before = mcu.onBreak;
  mcu.onBreak = (code) => {
    if (code !== CODE) return before(code);
    mcu.peripherals[WATCHDOG].alarm.enable = false; // the boot ROM stops it
    pico.stall(1e18);
    pico.stop('loader');
  };
}
