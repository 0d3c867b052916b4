// Decoder, regions and a compiled region, without rp2040js: node --test thumb_to_wasm/tests/compiler.test.mjs
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CompiledCode } from '../compiled_code.mjs';
import * as T from '../decode.mjs';
import { findRegion } from '../regions.mjs';

const CODE = 0x20001000;
const LIMIT = 1000; // cycles
const [R0, LR, PC] = [0, 14, 15];

// Puts instructions into RAM, compiles them and executes them once.
function execute(instructions, registers = {}) {
  const code = new CompiledCode();
  instructions.forEach((half, n) => {
    code.ram[(CODE & 0x7ffff) + 2 * n] = half & 255;
    code.ram[(CODE & 0x7ffff) + 2 * n + 1] = half >> 8;
  });
  code.registers[PC] = CODE;
  for (const [register, value] of Object.entries(registers)) code.registers[register] = value;
  code.waiting = [CODE];
  code.compile();
  const core = { N: false, Z: false, C: false, V: false, rp2040: { clock: { nanosCounter: 0 } } };
  const cycles = code.execute(core, LIMIT, 8);
  return { code, core, cycles };
}

test('an instruction is decoded into an operation, its registers and a value', () => {
  for (const [opcode, operation, value] of [
    [0x2005, T.MOV_I, 5], // movs r0, #5
    [0x3003, T.ADD_I, 3], // adds r0, #3
    [0x4770, T.BX, 0], // bx lr
    [0xd0fe, T.BEQ, CODE], // beq to itself
    [0xe7fe, T.B, CODE], // b to itself
    [0xdf00, T.FOREIGN, 0], // svc: the interpreter's
  ]) {
    const [word, carried] = T.decode(opcode, 0, CODE);
    assert.equal(word & 255, operation, opcode.toString(16));
    assert.equal(carried, value, opcode.toString(16));
  }
});

test('a region ends at a return and before an instruction that is left to the interpreter', () => {
  const instructions = { [CODE]: T.MOV_I, [CODE + 2]: T.FOREIGN, [CODE + 4]: T.BX };
  const learn = (pc) => ({ operation: instructions[pc], value: 0, pc });
  const [block, ...others] = findRegion(CODE, learn);
  assert.deepEqual(others, []);
  assert.equal(block.instructions.length, 1);
  assert.equal(block.next, CODE + 2);
});

test('compiled code leaves registers, flags and cycles as the processor would', () => {
  const { code, core, cycles } = execute([0x2005, 0x3805, 0x4770], { [LR]: CODE + 0x100 | 1 }); // 5 - 5, return
  assert.equal(code.registers[R0], 0);
  assert.deepEqual([core.N, core.Z, core.C, core.V], [false, true, true, false]);
  assert.equal(code.registers[PC] & ~1, CODE + 0x100);
  assert.equal(cycles, 1 + 1 + 2);
});
