// An instruction takes as long as the system clock says. Unpatched, the emulator always reckons with 125 MHz,
// also while the boot code still runs from the 12 MHz crystal, and after machine.freq().
export function patchClockRate(mcu, pico) {
  mcu.addClockListener((hz) => {
    pico.cycleNanos = 1e9 / hz;
  });
}
