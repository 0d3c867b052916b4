// Pins that read what is really on them: the level from outside where something drives them, else their own
// output, else their pull. Unpatched, an input that nothing drives reads low whatever its pull is, and an output
// does not read back.
export function patchGpioLevels(mcu, pico) {
  for (const pin of mcu.gpio) {
    pin.refreshInput = function () {
      const outside = pico.levels[this.index];
      this.setInputValue(outside ?? (this.value < 2 ? this.value === 1 : this.pullupEnabled));
    };
    if (pico.levels[pin.index]) pin.setInputValue(true);
    pin.addListener((value) => {
      if (value < 2 && pico.levels[pin.index] === undefined) pin.rawInputValue = value === 1;
    });
  }
}
