// A Raspberry Pi Pico that moves only when told to, with the parts of the machine's board around it.
//
// Everything that may change hangs off one object as a field, so that a snapshot finds it. Times are nanoseconds of
// world time, which goes on through resets and power cuts.
import { ConsoleLogger, LogLevel, Simulator, USBCDC } from 'rp2040js';
import { patchBootLoader } from './patches/boot_loader.mjs';
import { patchClockRate } from './patches/clock_rate.mjs';
import { patchFlash } from './patches/flash.mjs';
import { patchGpioLevels } from './patches/gpio_levels.mjs';
import { patchPwmRequest } from './patches/pwm_request.mjs';
import { patchRingOscillator, RingOscillator } from './patches/ring_oscillator.mjs';
import { restoreSnapshot, takeSnapshot } from './patches/snapshot.mjs';
import { patchUniqueId, UniqueId } from './patches/unique_id.mjs';
import { patchUartEdge } from './patches/uart_edge.mjs';
import { patchUsbDeaf } from './patches/usb_deaf.mjs';
import { patchUsbNak } from './patches/usb_nak.mjs';
import { keptOverReset, patchWatchdog } from './patches/watchdog.mjs';
import { Axis } from './parts/axis.mjs';
import { CardReader } from './parts/card_reader.mjs';
import { Display } from './parts/display.mjs';
import { Encoder } from './parts/encoder.mjs';
import { Expander } from './parts/expander.mjs';
import { Flash } from './parts/flash.mjs';
import { Fram } from './parts/fram.mjs';
import { I2cBus } from './parts/i2c_bus.mjs';
import { SerialCable } from './parts/serial_cable.mjs';
import { Interpreter } from './interpreter.mjs';
import { CompiledCode } from './thumb_to_wasm/compiled_code.mjs';

const FLASH_START = 0x10000000;
const UF2_BLOCK = 512;
const SAMPLE_NANOS = 2e3;

export class Pico {
  constructor(wiring, bootrom, serial, fast = true, watched = []) {
    this.wiring = wiring;
    this.bootrom = bootrom;
    this.ringOscillator = new RingOscillator();
    this.uniqueId = new UniqueId(serial);
    this.code = fast ? new CompiledCode() : new Interpreter();
    this.ram = this.code.ram;
    this.registers = this.code.registers;
    this.rom = this.code.rom;
    this.flash = new Flash(this, this.code.flash);
    this.fram = new Fram();
    this.levels = {}; // what drives each pin from outside
    this.epoch = 0; // world time at which this boot began
    this.clock = null;
    this.boots = 0;
    this.cycles = 0;
    this.powered = false;
    this.why = '';
    this.told = [];
    this.toUsb = [];
    this.fromUsb = [];
    this.accepted = []; // when the device took a packet of the host
    this.cable = true;
    this.deaf = false; // the USB host does not read
    this.axes = wiring.axes.map((axis, n) => new Axis(n, this.directionOf(axis), this));
    this.encoders = wiring.encoders.map(() => new Encoder(this));
    this.expanders = wiring.expanders.map(
      (_, n) => new Expander(() => this.expanderInterrupt(), (outputs) => this.tell('outputs', n, outputs)),
    );
    this.display = new Display((lines) => this.tell('display', lines[0], lines[1]));
    this.cardReader = new CardReader();
    this.snapshots = new Map();
    this.watched = new Set(watched); // where functions begin whose calls are told
    this.calls = []; // those that have not returned: [function, where to, with which stack]
    for (const address of watched) this.code.watch(address);
  }

  directionOf(axis) {
    if (axis.direction_pin !== null) return () => this.mcu.gpio[axis.direction_pin].value === 1;
    return () => ((this.expanders[axis.direction_chip].outputs >> axis.direction_bit) & 1) === 1;
  }

  // -- time and what happens ---------------------------------------------------------------------

  nanos() {
    return this.epoch + (this.clock ? this.clock.nanos : 0);
  }

  stop(why) {
    if (!this.why) this.why = why;
  }

  tell(kind, ...values) {
    this.told.push([kind, this.nanos() / 1e3, ...values]);
    this.stop('told');
  }

  // The interpreter comes to an instruction: is it the beginning of a watched function, or where one returns to?
  passes(core) {
    if (!this.watched.size) return;
    const { PC, LR, SP } = core;
    if (this.watched.has(PC)) {
      const back = (LR & ~1) >>> 0;
      this.calls.push([PC, back, SP]);
      this.code.watch(back);
      this.tell('called', PC, this.registers[0]);
    } else if (this.calls.length) {
      const [called, back, stack] = this.calls[this.calls.length - 1];
      if (PC !== back || SP !== stack) return;
      this.calls.pop();
      this.tell('returned', called);
    }
  }

  stall(nanos) {
    this.stalledUntil = this.clock.nanos + nanos;
  }

  // -- power ---------------------------------------------------------------------------------------

  loadUf2(image) {
    for (let at = 0; at < image.length; at += UF2_BLOCK) {
      const size = image.readUInt32LE(at + 16);
      const address = image.readUInt32LE(at + 12) - FLASH_START;
      this.flash.cells.set(image.subarray(at + 32, at + 32 + size), address);
    }
  }

  cutPower() {
    this.flash.cutPower();
    this.fram.cutPower();
    this.display.cutPower();
    this.ringOscillator.asked = false; // the answer may be lost
    for (const expander of this.expanders) expander.cutPower();
    this.epoch = this.nanos();
    this.clock = null;
    this.mcu = null;
    this.powered = false;
  }

  boot(kept = null) {
    this.epoch = this.nanos();
    const simulator = new Simulator();
    const { clock, rp2040: mcu } = simulator;
    this.clock = clock;
    this.mcu = mcu;
    this.boots++;
    this.powered = true;
    this.stalledUntil = 0;
    this.calls = [];
    this.cycleNanos = 8;
    this.toUsb = [];
    this.sampling = null;
    mcu.logger = new ConsoleLogger(LogLevel.Error);
    this.placeMemory(mcu);
    mcu.flash = new Uint8Array(0); // which it would clear
    mcu.loadBootrom(this.bootrom);
    const { cells } = this.flash;
    mcu.flash = cells;
    mcu.flash16 = new Uint16Array(cells.buffer, cells.byteOffset, cells.length / 2);
    mcu.flashView = new DataView(cells.buffer, cells.byteOffset, cells.length);
    patchClockRate(mcu, this);
    patchFlash(mcu, this);
    patchBootLoader(mcu, this);
    patchRingOscillator(mcu, this);
    patchWatchdog(mcu, this, kept);
    patchUniqueId(mcu, this);
    patchUartEdge(mcu);
    patchGpioLevels(mcu, this);
    patchPwmRequest(mcu);
    this.attachUsb();
    this.attachParts();
    mcu.core.PC = FLASH_START;
  }

  // The same memory for every boot: compiled code is bound to it.
  placeMemory(mcu) {
    this.code.boot(mcu);
    this.ram.fill(0);
    this.registers.fill(0);
    mcu.bootrom = this.rom;
    mcu.sram = this.ram;
    mcu.sramView = new DataView(this.ram.buffer, this.ram.byteOffset, this.ram.length);
    mcu.core.registers = this.registers;
  }

  attachUsb() {
    this.usb = new USBCDC(this.mcu.usbCtrl);
    patchUsbNak(this.mcu, this.usb, this);
    patchUsbDeaf(this.mcu, this.usb, this);
    this.usb.onSerialData = (bytes) => {
      if (!this.cable) return;
      this.fromUsb.push(...bytes);
      this.stop('said');
    };
  }

  attachParts() {
    const { mcu, clock, wiring } = this;
    for (const pin of wiring.outputs) {
      mcu.gpio[pin].addListener((value, before) => {
        if ((value === 1) !== (before === 1)) this.tell('pin', pin, value === 1 ? 1 : 0);
      });
    }
    wiring.axes.forEach((axis, n) => {
      mcu.gpio[axis.step_pin].addListener((value, before) => {
        if (value === 1 && before !== 1) this.axes[n].step();
      });
    });
    wiring.encoders.forEach((encoder, n) => this.encoders[n].attach(mcu.pwm.channels[encoder.slice]));
    mcu.gpio[wiring.fram_select].addListener((value, before) => {
      if ((value === 0) !== (before === 0)) this.fram.select(value === 0);
    });
    const spi = mcu.spi[wiring.fram_spi];
    this.fromFram = 0xff;
    this.exchanged = clock.createAlarm(() => spi.completeTransmit(this.fromFram));
    spi.onTransmit = (byte) => {
      this.fromFram = this.fram.exchange(byte);
      this.exchanged.schedule(8e9 / (spi.clockFrequency || 1e6));
    };
    const parts = { [wiring.display]: this.display, [wiring.card_reader]: this.cardReader };
    wiring.expanders.forEach((address, n) => {
      parts[address] = this.expanders[n];
    });
    this.serial = new SerialCable(mcu.uart[wiring.uart], clock, () => this.stop('said'));
    this.bus = new I2cBus(mcu.i2c[wiring.i2c], clock, parts);
    this.expanderInterrupt();
    mcu.adc.onADCRead = (channel) => {
      this.sampling = channel;
      this.tell('sample', channel);
    };
    this.sampled = clock.createAlarm(() => mcu.adc.completeADCRead(this.sample, false));
    this.horizon = clock.createAlarm(() => this.stop('until'));
  }

  expanderInterrupt() {
    this.setPin(this.wiring.expander_interrupt, this.expanders.some((each) => each.asserted) ? 0 : 1);
  }

  // -- from outside --------------------------------------------------------------------------------

  setPin(pin, level) {
    const on = !!level;
    if (this.levels[pin] === on) return;
    this.levels[pin] = on;
    if (this.mcu) this.mcu.gpio[pin].setInputValue(on);
  }

  giveSample(value) {
    this.sample = value;
    this.sampling = null;
    this.sampled.schedule(SAMPLE_NANOS);
  }

  runUntil(untilMicros) {
    this.why = '';
    this.told = [];
    this.fromUsb = [];
    this.accepted = [];
    this.pumpUsb();
    const { clock, horizon } = this;
    const { core } = this.mcu;
    horizon.schedule(Math.max(0, untilMicros * 1e3 - this.nanos()));
    while (!this.why) {
      if (clock.nanos < this.stalledUntil) {
        clock.tick(Math.min(clock.nanosToNextAlarm, this.stalledUntil - clock.nanos));
      } else if (core.waiting) {
        clock.tick(clock.nanosToNextAlarm);
      } else {
        this.cycles += this.code.run(this, core, clock);
      }
    }
    horizon.cancel();
    const { why } = this;
    if (why === 'reset') this.boot(keptOverReset(this.mcu));
    return why;
  }

  // -- snapshots -----------------------------------------------------------------------------------

  snapshot(name) {
    const { snapshots } = this;
    this.snapshots = null; // a snapshot is no part of a snapshot
    const taken = takeSnapshot(this);
    this.snapshots = snapshots;
    snapshots.set(name, taken);
    return taken.objects.size;
  }

  restore(name) {
    const { snapshots } = this;
    restoreSnapshot(snapshots.get(name));
    this.snapshots = snapshots;
  }
}
