// A snapshot: every field of every object that can be reached from one, and the bytes of every buffer. Restoring
// writes them back into the same objects, so that closures over them stay right. It takes a few milliseconds.
// What a closure keeps in a variable of its own is not seen: state belongs into fields.
export function takeSnapshot(root) {
  const objects = new Map();
  const buffers = new Map();
  const stack = [root];
  while (stack.length) {
    const each = stack.pop();
    if (each === null || typeof each !== 'object' || objects.has(each)) continue;
    if (ArrayBuffer.isView(each)) {
      objects.set(each, null);
      if (!buffers.has(each.buffer)) buffers.set(each.buffer, each.buffer.slice(0));
      continue;
    }
    let held;
    if (each instanceof Set) held = [...each];
    else if (each instanceof Map) held = [...each.entries()];
    else if (Array.isArray(each)) held = each.slice();
    else held = { ...each };
    objects.set(each, held);
    stack.push(...Object.values(held));
  }
  return { objects, buffers };
}

export function restoreSnapshot({ objects, buffers }) {
  for (const [buffer, bytes] of buffers) new Uint8Array(buffer).set(new Uint8Array(bytes));
  for (const [each, held] of objects) {
    if (held === null) continue;
    if (each instanceof Set) {
      each.clear();
      for (const item of held) each.add(item);
    } else if (each instanceof Map) {
      each.clear();
      for (const [key, value] of held) each.set(key, value);
    } else if (Array.isArray(each)) {
      each.length = 0;
      each.push(...held);
    } else {
      for (const key of Object.keys(each)) if (!(key in held)) delete each[key];
      Object.assign(each, held);
    }
  }
}
