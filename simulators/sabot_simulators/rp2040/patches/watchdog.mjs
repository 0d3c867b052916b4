// A watchdog that resets. Unpatched, its alarm goes off again and again at the same instant and nothing is reset;
// the reason and the scratch registers, which outlive a reset, are lost.
const WATCHDOG = 0x40058;

export function patchWatchdog(mcu, pico, kept) {
  const watchdog = mcu.peripherals[WATCHDOG];
  if (kept) {
    watchdog.reason = kept.reason;
    watchdog.scratchData.set(kept.scratch);
  }
  watchdog.onWatchdogTrigger = () => {
    watchdog.alarm.enable = false;
    pico.stop('reset');
  };
}

export function keptOverReset(mcu) {
  const watchdog = mcu.peripherals[WATCHDOG];
  return { reason: watchdog.reason, scratch: watchdog.scratchData.slice() };
}
