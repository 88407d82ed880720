#!/usr/bin/env bash
# Sets up what `make demo` and `make test` need, and does nothing when it is there already.
#   tools/setup.sh demo   .venv with PyTorch and the plot; compilers and emulators where we may install them
#   tools/setup.sh camera the same, with rp2040js in node, for `make demo-mnist`
#   tools/setup.sh npu    as demo, with Arm's compiler for Ethos-U
#   tools/setup.sh site   .venv/site with Zensical alone, for `make site`
#   tools/setup.sh test   the same, with ExecuTorch, ONNX, TFLite, tinygrad, their runtimes and the test tools
set -eu
cd "$(dirname "$0")/.."
kind=$1
case $kind in
    demo | camera | npu) extras=torch,plot ;;
    test) extras=executorch,onnx,tflite,tinygrad,tune,plot,dev,judges ;;
    site) ;;
    *) echo "usage: tools/setup.sh demo|camera|npu|site|test" >&2; exit 2 ;;
esac

# The site's generator needs nothing of the compiler's, so it has an environment of its own.
install_site() {
    if [ ! -e .venv/site/.ready ] || [ pyproject.toml -nt .venv/site/.ready ]; then
        package=$(sed -n 's/^site = \["\(.*\)"\]$/\1/p' pyproject.toml)
        echo "setup: pip install $package into .venv/site"
        python3 -m venv .venv/site
        .venv/site/bin/python -m pip install --quiet --disable-pip-version-check "$package"
        touch .venv/site/.ready
    fi
}
if [ "$kind" = site ]; then
    install_site
    exit 0
fi

# The pip packages alone suffice: Zig's clang compiles and Unicorn emulates. With GNU compilers and QEMU images get
# smaller and the Arm and RISC-V reference machines run too, so take them where it is allowed.
need=""
command -v arm-none-eabi-gcc >/dev/null || need="$need gcc-arm-none-eabi"
command -v qemu-system-arm >/dev/null || need="$need qemu-system-arm"
command -v qemu-system-riscv32 >/dev/null || need="$need qemu-system-misc"
command -v riscv64-unknown-elf-gcc >/dev/null || need="$need gcc-riscv64-unknown-elf"
command -v gcc >/dev/null || need="$need gcc libc6-dev"
# rp2040js, a second emulator of the Pico, runs in node.
[ "$kind" = demo ] || command -v node >/dev/null || need="$need nodejs"
[ "$kind" = demo ] || command -v npm >/dev/null || need="$need npm"
# Tests look at the report's page in a real browser.
[ "$kind" != test ] || command -v chromium chromium-browser google-chrome >/dev/null || need="$need chromium"
# And Arduinos: their compiler with its library of floats, and their emulator.
[ "$kind" != test ] || command -v avr-gcc >/dev/null || need="$need gcc-avr avr-libc"
[ "$kind" != test ] || [ -e /usr/include/simavr/sim_avr.h ] || need="$need libsimavr-dev"
# A debugger looks into running images.
[ "$kind" != test ] || command -v gdb-multiarch >/dev/null || need="$need gdb-multiarch"
# The simulated cluster is held against its core's RTL.
[ "$kind" != test ] || command -v verilator >/dev/null || need="$need verilator g++"
# Arduino's own builder makes the libraries for the Uno, which simavr runs.
[ "$kind" != test ] || command -v arduino-builder >/dev/null || need="$need arduino-builder arduino-ctags"
[ "$kind" != test ] || dpkg -s arduino-core-avr >/dev/null 2>&1 || need="$need arduino-core-avr"
[ "$kind" != test ] || command -v simavr >/dev/null || need="$need simavr"
[ "$kind" != test ] || command -v zip >/dev/null || need="$need zip"
# Projects for SDKs are built with stubs of these, which need a C library.
if [ "$kind" = test ]; then
    command -v cmake >/dev/null || need="$need cmake make"
    command -v ninja >/dev/null || need="$need ninja-build"
    [ -e "$(arm-none-eabi-g++ -print-file-name=librdimon.a 2>/dev/null)" ] \
        || need="$need libnewlib-arm-none-eabi libstdc++-arm-none-eabi-newlib"
fi
python3 -c 'import ensurepip' 2>/dev/null || need="$need python3-venv"
if [ -n "$need" ]; then
    root=""
    [ "$(id -u)" = 0 ] || root="sudo -n"
    if command -v apt-get >/dev/null && { [ -z "$root" ] || $root true 2>/dev/null; }; then
        echo "setup: apt-get install$need"
        if ! { $root apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
            $root apt-get install -y -qq --no-install-recommends $need >/dev/null; }; then
            echo "setup: apt-get failed; going on with the pip packages alone"
        fi
    else
        echo "setup: without root; going on with the pip packages alone (for more: apt-get install$need)"
    fi
fi

stamp=.venv/.ready-$kind
if [ ! -e "$stamp" ] || [ pyproject.toml -nt "$stamp" ] || [ tools/setup.sh -nt "$stamp" ]; then
    [ -x .venv/bin/python ] || python3 -m venv .venv
    echo "setup: pip install -e '.[$extras]' into .venv (PyTorch is large: this takes minutes)"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -e ".[$extras]"
    touch "$stamp"
fi
if [ "$kind" != demo ] && [ "$kind" != npu ] && [ ! -e .venv/lib/node_modules/rp2040js ]; then
    echo "setup: npm install rp2040js into .venv"
    npm install --silent --no-audit --no-fund --global --prefix "$PWD/.venv" rp2040js@1.4.1
fi
# Arm's compiler for Ethos-U and its TOSA reference model need another ml_dtypes than ONNX: an environment of their own.
if { [ "$kind" = test ] || [ "$kind" = npu ]; } && [ ! -e .venv/vela/bin/vela ]; then
    echo "setup: pip install ethos-u-vela tosa-tools into .venv/vela"
    python3 -m venv .venv/vela
    .venv/vela/bin/python -m pip install --quiet --disable-pip-version-check ethos-u-vela==5.2.0 tosa-tools==2026.8.0
fi
[ "$kind" != test ] || install_site
