// A snapshot: every field of every object that can be reached from one, and the bytes of every array. Restoring
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
      keepBytes(each, buffers);
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

// Several views may show the same bytes of one buffer, and others may hold bytes of it that are not for us.
function keepBytes({ buffer, byteOffset, byteLength }, buffers) {
  const kept = buffers.get(buffer) ?? [];
  buffers.set(buffer, kept);
  if (kept.some(({ at, bytes }) => at === byteOffset && bytes.length === byteLength)) return;
  kept.push({ at: byteOffset, bytes: new Uint8Array(buffer, byteOffset, byteLength).slice() });
}

export function restoreSnapshot({ objects, buffers }) {
  for (const [buffer, kept] of buffers) {
    for (const { at, bytes } of kept) new Uint8Array(buffer).set(bytes, at);
  }
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
