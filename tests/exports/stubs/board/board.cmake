# What the stubs share: a compiler for the CPU, and what programs run on. That is the chip whose start-up code lies in
# $STUB_CHIP, or one of QEMU's machines with its memory at $STUB_FLASH and $STUB_RAM. $STUB_CPU has the CPU's flags.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(STUB_BOARD ${CMAKE_CURRENT_LIST_DIR})
set(STUB_CHIP $ENV{STUB_CHIP})
separate_arguments(stub_cpu UNIX_COMMAND "$ENV{STUB_CPU}")

function(stub_target name)
  target_compile_options(${name} INTERFACE ${stub_cpu} -ffunction-sections -fdata-sections)
  target_link_options(${name} INTERFACE ${stub_cpu} -nostartfiles -Wl,--gc-sections -Wl,--no-warn-rwx-segments)
  if(STUB_CHIP)
    # Emulators count from the run function to a label of our images, which other programs do not have.
    target_link_options(${name} INTERFACE -T${STUB_CHIP}/link.ld -Wl,--defsym=bt_model_returned=bt_serve
      -Wl,--defsym=__preinit_array_start=0,--defsym=__preinit_array_end=0,--defsym=__exidx_start=0,--defsym=__exidx_end=0)
    file(GLOB_RECURSE sources ${STUB_CHIP}/*.c ${STUB_CHIP}/*.S)
    add_library(stub_chip OBJECT ${sources} ${STUB_BOARD}/chip.c)
    target_include_directories(stub_chip PRIVATE ${STUB_CHIP})
    target_compile_options(stub_chip PRIVATE ${stub_cpu} -Os -ffreestanding -fno-strict-aliasing)
    target_sources(${name} INTERFACE $<TARGET_OBJECTS:stub_chip>)
  else()
    target_link_options(${name} INTERFACE --specs=rdimon.specs -T${STUB_BOARD}/qemu.ld
      -Wl,--defsym=FLASH=$ENV{STUB_FLASH},--defsym=RAM=$ENV{STUB_RAM})
    target_sources(${name} INTERFACE ${STUB_BOARD}/qemu.c)
  endif()
endfunction()
