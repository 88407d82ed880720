/* Arm's Ethos-U55, U65 and U85: runs a command stream to its end, or ends the program with a report in words. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"
#include "crc.h"
#include "npu.h"

#define NPU(offset) BT_REG(BT_NPU_BASE + (offset))
#define ID NPU(0x00u)
#define STATUS NPU(0x04u)
#define CMD NPU(0x08u)
#define RESET NPU(0x0cu)
#define QBASE NPU(0x10u)
#define QBASE_HIGH NPU(0x14u)
#define QREAD NPU(0x18u)
#define QCONFIG NPU(0x1cu)
#define QSIZE NPU(0x20u)
#define PROT NPU(0x24u)
#define CONFIG NPU(0x28u)
#define REGIONCFG NPU(0x3cu)
#define AXI_LIMIT(i) NPU(0x40u + 4u * (i)) /* U55, U65: four kinds of access; on the U85 these are MEM_ATTR */
#define AXI_SRAM NPU(0x50u)                /* U85 */
#define AXI_EXT NPU(0x54u)
#define BASEP(i) NPU(0x80u + 8u * (i))
#define BASEP_HIGH(i) NPU(0x84u + 8u * (i))

#define STATUS_IRQ (1u << 1)
#define STATUS_RESETTING (1u << 3)
#define STATUS_END (1u << 5)
#define STATUS_FAULTS 0x394u /* those of `causes` */
#define CMD_RUN 1u
#define CMD_CLEAR_IRQ 2u
#define CMD_POWER_GATING 8u
#define CMD_GATING 0xcu /* of clock and power; a reset enables both, and the application may change them */
#define PROT_LEVELS 3u
#define SECURE_AND_PRIVILEGED 1u /* as we are */
#define ARCHITECTURE(id) ((id) >> 28)
#define PRODUCT(config) ((config) >> 28)
#define U85 2u

#define LIMIT_MS 5000u
#define RESET_LOOKS 100000u
#define KNOWN 16u
#define ALIGNED 16u

/* Accesses by the port for RAM are of kind 0, by the other one of kind 2. */
#ifdef BT_NPU_CONSTANTS_APART
#define STREAM_KIND 2u
#define REGION_KINDS (2u << 2 * BT_NPU_WEIGHTS)
#else
#define STREAM_KIND 0u
#define REGION_KINDS 0u
#endif
#define U55_LIMITS (31u << 16 | 15u << 24) /* 32 reads and 16 writes at a time */
#define U85_EXTERNAL (1u << 2)
#define U85_LIMITS(reads, writes) (2u << 16 | ((writes)-1u) << 8 | ((reads)-1u)) /* bursts of 256 bytes */

void bt_npu_sleep(void);

typedef struct {
    uint32_t bits;
    const char *text;
} named;

static const named causes[] = {
    {1u << 2, "read or wrote where nothing answers"},
    {1u << 4, "found a command that it does not know"},
    {1u << 7, "found a fault in what it decodes"}, /* U55, U65 */
    {1u << 8, "found a memory error that it cannot correct"},
    {1u << 9, "branched to where no command is"}, /* U85 */
};

/* What Arm's driver compares. Bits for SHRAM, weight decoders, custom DMA and functional safety may differ. */
static const named config_fields[] = {
    {0xf0000000u, "product"},
    {0x0000000fu, "MACs per cycle"},
    {0x000000f0u, "command stream version"},
    {0x00000700u, "AXI ports"}, /* U85 */
};

__attribute__((noreturn)) static void end(void)
{
    bt_print("\nEND OF FAULT\n");
    for (;;) {
        __asm__ volatile("wfi");
    }
}

__attribute__((noreturn)) static void failed(const char *what, uint32_t status)
{
    bt_print("\nFAULT: the NPU ");
    bt_print(what);
    bt_print("\nstatus ");
    bt_print_hex(status);
    bt_print(" at byte ");
    bt_print_hex(QREAD);
    bt_print(" of the command stream");
    end();
}

__attribute__((noreturn)) static void differs(const char *what, const char *name, uint32_t found, uint32_t needed)
{
    bt_print("\nFAULT: the ");
    bt_print(what);
    bt_print("\n");
    bt_print(name);
    bt_print(" ");
    bt_print_hex(found);
    bt_print(" instead of ");
    bt_print_hex(needed);
    end();
}

static uint32_t crc_of(uint32_t crc, const void *data, uint32_t bytes)
{
    const uint8_t *byte = data;
    for (; bytes > 0; bytes--, byte++) {
        crc = bt_crc_add(crc, *byte);
        bt_watchdog_feed();
    }
    return crc;
}

static void check_npu(uint32_t needed)
{
    static const char other[] = "NPU is not the one that the model was compiled for";
    const uint32_t config = CONFIG, id = ID;
    const uint32_t is_u85 = PRODUCT(needed) == U85;
    for (uint32_t i = 0; i < 3u + is_u85; i++) {
        if (((config ^ needed) & config_fields[i].bits) != 0) {
            differs(other, config_fields[i].text, config, needed);
        }
    }
    if (ARCHITECTURE(id) != 1u + is_u85) { /* streams need no particular minor version of it */
        differs(other, "architecture", ARCHITECTURE(id), 1u + is_u85);
    }
}

/* Before a stream is first started after a reset, it must be for this NPU, and it and its weights must be those that were
 * compiled; otherwise the NPU would silently compute something else. A model with more regions than are remembered is
 * checked every time. */
static void check(const bt_npu_job *job, const int32_t *commands, const void *weights)
{
    static const int32_t *whole[KNOWN];
    uint32_t i = 0;
    while (i < KNOWN && whole[i] != 0) {
        if (whole[i++] == commands) {
            return;
        }
    }
    check_npu(job->config);
    const uint32_t crc = ~crc_of(crc_of(BT_CRC_BEGIN, commands, job->command_bytes), weights, job->weight_bytes);
    if (crc != job->crc) {
        differs("commands or weights for the NPU are damaged", "checksum", crc, job->crc);
    }
    if (i < KNOWN) {
        whole[i] = commands;
    }
}

/* Cores with a data cache: what the NPU reads is in memory before it begins, and what it wrote is read from there. */
static void flush_cache(void)
{
#if __ARM_ARCH >= 8
    const uint32_t enabled = BT_REG(0xe000ed14u) & (1u << 16);
    if (enabled != 0) {
        BT_REG(0xe000ed84u) = 0; /* the first data cache */
        __asm__ volatile("dsb" : : : "memory");
        const uint32_t size = BT_REG(0xe000ed80u);
        const uint32_t sets = (size >> 13 & 0x7fffu) + 1u, ways = (size >> 3 & 0x3ffu) + 1u;
        for (uint32_t set = 0; set < sets; set++) {
            for (uint32_t way = 0; way < ways; way++) {
                BT_REG(0xe000ef74u) = way << 30 | set << 5; /* clean and forget: four ways, 32 bytes a line */
            }
        }
    }
#endif
    __asm__ volatile("dsb" : : : "memory");
}

static void set_up(uint32_t config)
{
    RESET = SECURE_AND_PRIVILEGED;
    for (uint32_t looks = 0; (STATUS & STATUS_RESETTING) != 0; looks++) {
        if (looks == RESET_LOOKS) {
            failed("does not come out of reset", STATUS);
        }
    }
    const uint32_t levels = PROT & PROT_LEVELS;
    if (levels != SECURE_AND_PRIVILEGED) {
        differs("NPU did not become secure and privileged", "PROT", levels, SECURE_AND_PRIVILEGED);
    }
    for (uint32_t i = 0; i < 4u; i++) {
        AXI_LIMIT(i) = PRODUCT(config) == U85 ? (i < 2u ? 0u : U85_EXTERNAL) : U55_LIMITS;
    }
    if (PRODUCT(config) == U85) {
        AXI_SRAM = U85_LIMITS(12u, 16u);
        AXI_EXT = U85_LIMITS(64u, 32u);
    }
    QCONFIG = STREAM_KIND;
    REGIONCFG = REGION_KINDS;
    QBASE_HIGH = 0;
    for (uint32_t i = 0; i < BT_NPU_REGIONS; i++) {
        BASEP_HIGH(i) = 0;
    }
}

/* Waits for the end, or for too long; returns STATUS. */
static uint32_t end_status(uint32_t gating)
{
    uint32_t status;
    int late = 0;
#ifdef BT_NPU_IRQ
    bt_alarm_start(LIMIT_MS);
    bt_mask_interrupts();
    while (((status = STATUS) & STATUS_IRQ) == 0 && !late) {
        bt_alarm_wakes(1);
        bt_npu_sleep();
        bt_alarm_wakes(0); /* else it stays pending, and the core awake */
        late = bt_alarm_rang();
    }
    CMD = gating | CMD_CLEAR_IRQ;
    bt_unmask_interrupts();
    bt_alarm_stop();
#else
    const uint32_t start = bt_counter_read();
    while (((status = STATUS) & STATUS_IRQ) == 0 && !late) {
        late = bt_counter_read() - start > BT_COUNTER_HZ / 1000u * LIMIT_MS;
    }
    CMD = gating | CMD_CLEAR_IRQ;
#endif
    return status;
}

static const char *cause(uint32_t status)
{
    for (uint32_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        if ((status & causes[i].bits) != 0) {
            return causes[i].text;
        }
    }
    return (status & STATUS_IRQ) != 0 ? "stopped before the end" : "did not end in time";
}

void bt_npu_run(const bt_npu_job *job, const int32_t *commands, const void *const *regions)
{
    static int ready;
    check(job, commands, regions[BT_NPU_WEIGHTS]);
    /* Where power gating is enabled, an idle NPU may lose its power, and with it what was set up. */
    const uint32_t gating = CMD & CMD_GATING, powered = gating & ~CMD_POWER_GATING;
    CMD = powered;
    if (!ready || (PROT & PROT_LEVELS) != SECURE_AND_PRIVILEGED) {
        set_up(job->config);
        CMD = powered;
        ready = 1;
    }
    QBASE = (uint32_t)(uintptr_t)commands;
    QSIZE = job->command_bytes;
    for (uint32_t i = 0; i < BT_NPU_REGIONS; i++) {
        const uint32_t base = (uint32_t)(uintptr_t)regions[i];
        if (base % ALIGNED != 0) {
            failed("would leave out the lowest bits of an address: the arena is not aligned to 16", STATUS);
        }
        BASEP(i) = base;
    }
    flush_cache();
    CMD = powered | CMD_RUN;
    const uint32_t status = end_status(powered);
    if ((status & (STATUS_FAULTS | STATUS_END)) != STATUS_END) {
        failed(cause(status), status);
    }
    CMD = gating;
    flush_cache();
}
