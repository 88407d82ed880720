# What the stubs share: a compiler for the CPU, and a machine of QEMU's to run on. Set STUB_CPU, STUB_FLASH, STUB_RAM.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(STUB_BOARD ${CMAKE_CURRENT_LIST_DIR})
separate_arguments(stub_cpu UNIX_COMMAND "$ENV{STUB_CPU}")

function(stub_target name)
  target_compile_options(${name} INTERFACE ${stub_cpu} -ffunction-sections -fdata-sections)
  target_sources(${name} INTERFACE ${STUB_BOARD}/start.c)
  target_link_options(${name} INTERFACE ${stub_cpu} --specs=rdimon.specs -nostartfiles -T${STUB_BOARD}/board.ld
    -Wl,--defsym=FLASH=$ENV{STUB_FLASH},--defsym=RAM=$ENV{STUB_RAM} -Wl,--gc-sections -Wl,--no-warn-rwx-segments)
endfunction()
