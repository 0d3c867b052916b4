// Regions of code: the blocks that are reached from an entry by jumps whose target is in the instruction. Calls and
// returns leave a region.
import { ADD_PC, B, BEQ, BL, BLE, BLX, BX, FOREIGN, MOV_PC, POP_PC } from './decode.mjs';

const BLOCK = 32; // instructions
const REGION = 160;
export const LONGEST = BLOCK * 14; // cycles of a block, and more

const LEAVES = new Set([BX, BLX, MOV_PC, ADD_PC, POP_PC, BL]);
export const isBranch = (operation) => operation >= BEQ && operation <= BLE;

// The blocks of a region in the order of their addresses: where each begins, its instructions, and where it goes on
// after the last one (null if that one always goes elsewhere). The entry need not be the first.
export function findRegion(entry, learn) {
  const starts = new Set([entry]);
  const known = new Map(); // every instruction, by its address
  const toDo = [entry];
  while (toDo.length) follow(toDo.pop(), starts, known, toDo, learn);
  return [...starts]
    .filter((start) => known.has(start))
    .sort((a, b) => a - b)
    .map((start) => makeBlock(start, starts, known));
}

// One instruction after the other, until one is known, foreign, or always goes elsewhere.
function follow(start, starts, known, toDo, learn) {
  let pc = start;
  for (let size = 0; !known.has(pc) && known.size < REGION; pc += 2) {
    if (size++ === BLOCK) {
      toDo.push(pc);
      break;
    }
    const each = learn(pc);
    const { operation, value } = each;
    if (operation === FOREIGN) break;
    known.set(pc, each);
    if (LEAVES.has(operation)) return;
    if (operation === B || isBranch(operation)) {
      starts.add(value);
      toDo.push(value);
      if (operation === B) return;
      starts.add(pc + 2);
    }
  }
  starts.add(pc);
}

function makeBlock(start, starts, known) {
  const instructions = [];
  let pc = start;
  do {
    const each = known.get(pc);
    instructions.push(each);
    if (each.operation === B || LEAVES.has(each.operation)) return { start, instructions, next: null };
    pc += 2;
  } while (!starts.has(pc) && known.has(pc));
  return { start, instructions, next: pc };
}
