// alloc_faults: let the n-th allocation of MicroPython's heap fail, and fork the process.
//
// The linker routes gc_alloc and gc_realloc through the functions below (--wrap, see micropython.mk).
// Allocations are counted only while `counting` is on. The n-th of them finds no memory, and so does every later
// one if `lasting` is on, until disarm(). MicroPython then raises MemoryError, as if the heap were full.

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "py/gc.h"
#include "py/mperrno.h"
#include "py/runtime.h"

static mp_int_t counted = 0; // allocations since arm()
static mp_int_t fails_at = 0; // 0: none fails
static bool lasting = false;
static bool counting = false;
static mp_int_t failed = 0; // how many found no memory

static bool has_no_memory(void) {
    if (!counting) {
        return false;
    }
    counted++;
    if (fails_at == 0 || counted < fails_at || (counted > fails_at && !lasting)) {
        return false;
    }
    failed++;
    return true;
}

void *__real_gc_alloc(size_t bytes, unsigned int flags);
void *__wrap_gc_alloc(size_t bytes, unsigned int flags);
void *__wrap_gc_alloc(size_t bytes, unsigned int flags) {
    return bytes != 0 && has_no_memory() ? NULL : __real_gc_alloc(bytes, flags);
}

void *__real_gc_realloc(void *old, size_t bytes, bool may_move);
void *__wrap_gc_realloc(void *old, size_t bytes, bool may_move);
void *__wrap_gc_realloc(void *old, size_t bytes, bool may_move) {
    bool grows = bytes != 0 && (old == NULL || bytes > gc_nbytes(old));
    return grows && has_no_memory() ? NULL : __real_gc_realloc(old, bytes, may_move);
}

// arm(n, lasting): the n-th allocation from now on fails; 0 only counts.
static mp_obj_t arm(mp_obj_t n, mp_obj_t lasts) {
    fails_at = mp_obj_get_int(n);
    lasting = mp_obj_is_true(lasts);
    counted = failed = 0;
    return mp_const_none;
}
static MP_DEFINE_CONST_FUN_OBJ_2(arm_obj, arm);

// count(on): begin or stop to count; whether it counted before.
static mp_obj_t count(mp_obj_t on) {
    bool before = counting;
    counting = mp_obj_is_true(on);
    return mp_obj_new_bool(before);
}
static MP_DEFINE_CONST_FUN_OBJ_1(count_obj, count);

// disarm(): no allocation fails any more; how many were counted.
static mp_obj_t disarm(void) {
    fails_at = 0;
    counting = false;
    return MP_OBJ_NEW_SMALL_INT(counted);
}
static MP_DEFINE_CONST_FUN_OBJ_0(disarm_obj, disarm);

// failures(): how many allocations found no memory since arm().
static mp_obj_t failures(void) {
    return MP_OBJ_NEW_SMALL_INT(failed);
}
static MP_DEFINE_CONST_FUN_OBJ_0(failures_obj, failures);

// fork(): 0 in the child. The parent waits for the end of the child; 1 plus its exit code then.
static mp_obj_t fork_and_wait(void) {
    pid_t child = fork();
    if (child < 0) {
        mp_raise_OSError(MP_EAGAIN);
    }
    if (child == 0) {
        return MP_OBJ_NEW_SMALL_INT(0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    return MP_OBJ_NEW_SMALL_INT(1 + (WIFEXITED(status) ? WEXITSTATUS(status) : 255));
}
static MP_DEFINE_CONST_FUN_OBJ_0(fork_obj, fork_and_wait);

static const mp_rom_map_elem_t globals_table[] = {
    { MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_alloc_faults) },
    { MP_ROM_QSTR(MP_QSTR_arm), MP_ROM_PTR(&arm_obj) },
    { MP_ROM_QSTR(MP_QSTR_count), MP_ROM_PTR(&count_obj) },
    { MP_ROM_QSTR(MP_QSTR_disarm), MP_ROM_PTR(&disarm_obj) },
    { MP_ROM_QSTR(MP_QSTR_failures), MP_ROM_PTR(&failures_obj) },
    { MP_ROM_QSTR(MP_QSTR_fork), MP_ROM_PTR(&fork_obj) },
};
static MP_DEFINE_CONST_DICT(globals_dict, globals_table);

const mp_obj_module_t alloc_faults_module = {
    .base = { &mp_type_module },
    .globals = (mp_obj_dict_t *)&globals_dict,
};
MP_REGISTER_MODULE(MP_QSTR_alloc_faults, alloc_faults_module);
