// The program as it lies in flash, for the board to hash: Python module sabot_image.
#include "py/obj.h"
#include "py/objarray.h"
#include "py/runtime.h"
#include "hardware/regs/addressmap.h"

extern char __flash_binary_end;

#define PAGE 256

// program(): a view of the flash from its beginning to the end of the program's last page
static mp_obj_t image_program(void) {
    size_t size = (uintptr_t)&__flash_binary_end - XIP_BASE;
    size = (size + PAGE - 1) / PAGE * PAGE;
    return mp_obj_new_memoryview('B', size, (void *)XIP_BASE);
}
static MP_DEFINE_CONST_FUN_OBJ_0(image_program_obj, image_program);

static const mp_rom_map_elem_t image_globals_table[] = {
    { MP_ROM_QSTR(MP_QSTR___name__), MP_ROM_QSTR(MP_QSTR_sabot_image) },
    { MP_ROM_QSTR(MP_QSTR_program), MP_ROM_PTR(&image_program_obj) },
};
static MP_DEFINE_CONST_DICT(image_globals, image_globals_table);

const mp_obj_module_t sabot_image_module = {
    .base = { &mp_type_module },
    .globals = (mp_obj_dict_t *)&image_globals,
};
MP_REGISTER_MODULE(MP_QSTR_sabot_image, sabot_image_module);
