// Serves one emulated Pico: a line of JSON in, a line of JSON out. messages.py is the other end and says what they mean.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { Pico } from './pico.mjs';

const STDIN = 0;
const STDOUT = 1;
let pico = null;

const CHANGES = {
  pin: (pin, level) => pico.setPin(pin, level),
  inputs: (chip, word) => pico.expanders[chip].set(word),
  noise: (text) => pico.ringOscillator.give(Buffer.from(text, 'latin1')),
  noise_stuck: (bit) => {
    pico.ringOscillator.stuck = bit < 0 ? null : bit;
  },
  sample: (value) => pico.giveSample(value),
  encoder: (n, micros, count, perMicro) => pico.encoders[n].set(micros, count, perMicro),
  face: (face) => {
    pico.cardReader.face = face;
  },
  stop_at: (axis, ...positions) => {
    pico.axes[axis].stopAt = positions;
  },
  usb: (text) => {
    if (pico.cable) pico.toUsb.push(...Buffer.from(text, 'latin1'));
  },
  uart: (text) => pico.serial.send(Buffer.from(text, 'latin1')),
  deaf: (on) => {
    pico.deaf = on;
    if (!on) pico.listen();
  },
  cable: (there) => {
    pico.cable = there;
    if (!there) pico.toUsb.length = 0;
  },
};

const state = (why) => ({
  now_us: pico.nanos() / 1e3,
  why,
  told: pico.told,
  usb: Buffer.from(pico.fromUsb).toString('latin1'),
  uart: pico.powered ? Buffer.from(pico.serial.take()).toString('latin1') : '',
  uart_at_us: pico.powered ? (pico.epoch + pico.serial.saidAt) / 1e3 : 0,
  accepted: pico.accepted,
  untaken: pico.powered ? [pico.untakenUsb(), pico.serial.toDevice.length] : [0, 0],
  axes: pico.axes.map((axis) => axis.position),
});

const cells = (part) => (part === 'sram' ? pico.ram : pico[part].cells);

const REQUESTS = {
  start({ wiring, bootrom, image, serial, interpreted, watched }) {
    const rom = fs.readFileSync(bootrom);
    const words = new Uint32Array(rom.buffer.slice(rom.byteOffset, rom.byteOffset + rom.length));
    pico = new Pico(wiring, words, Buffer.from(serial, 'hex'), !interpreted, watched);
    pico.loadUf2(fs.readFileSync(image));
    return {};
  },
  power_on() {
    pico.boot();
    return state('booted');
  },
  power_off() {
    pico.cutPower();
    pico.told = [];
    pico.fromUsb = [];
    return state('off');
  },
  run({ until_us, changes }) {
    for (const [kind, ...values] of changes) CHANGES[kind](...values);
    return state(pico.runUntil(until_us));
  },
  pass({ until_us }) {
    pico.epoch = Math.max(pico.epoch, until_us * 1e3);
    return state('off');
  },
  snapshot: ({ name }) => ({ objects: pico.snapshot(name) }),
  restore({ name }) {
    pico.restore(name);
    pico.told = [];
    pico.fromUsb = [];
    return state('restored');
  },
  hang({ micros }) {
    pico.stall(micros * 1e3);
    return {};
  },
  fault({ part, field, value }) {
    for (const each of [pico[part]].flat()) each[field] = value;
    return {};
  },
  read_memory: ({ part, at, size }) => ({ data: Buffer.from(cells(part).subarray(at, at + size)).toString('base64') }),
  write_memory({ part, at, data }) {
    cells(part).set(Buffer.from(data, 'base64'), at);
    return {};
  },
  digest() {
    const registers = pico.registers.slice();
    registers[15] &= ~1; // which rp2040js keeps of an exception's vector, until a jump
    const whole = createHash('sha256').update(pico.ram).update(new Uint8Array(registers.buffer));
    const { N, Z, C, V } = pico.mcu.core;
    return { digest: whole.update(JSON.stringify([N, Z, C, V, pico.nanos()])).digest('hex') };
  },
  figures: () => ({
    cycles: pico.cycles,
    boots: pico.boots,
    flash_operations: pico.flash.operations,
    fram_writes: pico.fram.writes,
  }),
};

function answer(line) {
  let said;
  try {
    const { request, ...rest } = JSON.parse(line);
    said = REQUESTS[request](rest);
  } catch (error) {
    said = { failed: String(error.stack) };
  }
  const bytes = Buffer.from(`${JSON.stringify(said)}\n`);
  for (let at = 0; at < bytes.length; ) at += fs.writeSync(STDOUT, bytes, at);
}

const chunk = Buffer.alloc(1 << 16);
let pending = '';
for (;;) {
  const size = fs.readSync(STDIN, chunk);
  if (size === 0) break;
  pending += chunk.toString('latin1', 0, size);
  for (let end = pending.indexOf('\n'); end >= 0; end = pending.indexOf('\n')) {
    const line = pending.slice(0, end);
    pending = pending.slice(end + 1);
    answer(line);
  }
}
