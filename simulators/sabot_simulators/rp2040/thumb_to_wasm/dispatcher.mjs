import * as M from './memory.mjs';
import * as W from './wasm.mjs';

// Runs compiled regions, one after the other, until one stops (1) or the next is not compiled (0).
export function makeDispatcher(world) {
  const body = new W.Body(2);
  const [pc, at] = [0, 1];
  body.do(W.number(0));
  body.memory(W.LOAD, M.PC_AT);
  body.do(W.number(~1), W.AND, W.set(pc)); // an exception begins with the lowest bit set
  const out = body.block();
  const again = body.loop();
  compilePlace(body, pc, at, out);
  body.do(W.number(1), W.SHL);
  body.memory(W.LOAD, M.ENTRIES_AT);
  body.do(W.tee(at), W.number(0), W.LE_S);
  body.toIf(out);
  body.do(W.get(at));
  body.callIndirect();
  body.do(W.tee(pc), W.number(1), W.AND, W.EQZ);
  body.toIf(again);
  body.end();
  body.end();
  body.do(W.number(0), W.get(pc), W.number(~1), W.AND);
  body.memory(W.STORE, M.PC_AT);
  body.do(W.get(pc), W.number(1), W.AND);
  return W.instantiate([body.done()], world)[0];
}

// Twice the place of an address, as place() in memory.mjs has it; out where there is no code.
function compilePlace(body, pc, at, out) {
  body.do(W.get(pc), W.number(M.FLASH), W.SUB, W.tee(at), W.number(M.FLASH_SIZE), W.LT_U);
  body.if(true);
  body.do(W.get(at));
  body.else();
  body.do(W.get(pc), W.number(M.RAM), W.SUB, W.tee(at), W.number(M.RAM_SIZE), W.LT_U);
  body.if(true);
  body.do(W.get(at), W.number(2 * M.FLASH_PLACES), W.ADD);
  body.else();
  body.do(W.get(pc), W.number(M.ROM_SIZE), W.GE_U);
  body.toIf(out);
  body.do(W.get(pc), W.number(2 * M.ROM_PLACE), W.ADD);
  body.end();
  body.end();
}
