// The locals of a compiled region: the registers r0 to r14, and those below.
export const SP = 13;
export const LR = 14;
export const [RESULT, C, V, SPENT, LIMIT, PC, NEXT, X, Y, AT] = Array.from({ length: 10 }, (_, n) => 15 + n);
export const LOCALS = 25;
