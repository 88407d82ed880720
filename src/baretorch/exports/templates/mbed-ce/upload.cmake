# How `ninja flash-@NAME@_example` writes the board; mbed-os has no such settings for it. Choose another with
# -DUPLOAD_METHOD=OPENOCD, STM32CUBE or MBED (drag and drop). Other targets have theirs in mbed-os.
if(MBED_TARGET STREQUAL "@SDK_BOARD@")
    set(UPLOAD_METHOD_DEFAULT PYOCD)

    set(PYOCD_UPLOAD_ENABLED TRUE)
    set(PYOCD_TARGET_NAME @SDK_PYOCD@)
    set(PYOCD_CLOCK_SPEED 4000k)

    set(OPENOCD_UPLOAD_ENABLED TRUE)
    set(OPENOCD_CHIP_CONFIG_COMMANDS -f @INTERFACE@ -f @OPENOCD@)

    set(STM32CUBE_UPLOAD_ENABLED TRUE)
    set(STM32CUBE_CONNECT_COMMAND -c port=SWD reset=HWrst)
    set(STM32CUBE_GDBSERVER_ARGS --swd)

    set(MBED_UPLOAD_ENABLED TRUE)
    set(MBED_RESET_BAUDRATE 115200)
endif()
