// The judge: CV32E40P's own RTL, as Verilator makes C++ of it, with the memory system of the simulator.
#include <cstring>

#include "Vcv32e40p_top.h"
#include "verilated.h"

extern "C" {
#include "cluster.h"
}

namespace {

// Our clock starts one edge before the core leaves its reset.
constexpr uint64_t FIRST = BT_BOOT + 1;

struct Port {
    Vcv32e40p_top *core;
    bool fetched = false, answered = false, promised = false;
    uint32_t code = 0, data = 0;
    uint64_t grant = 0;
};

uint32_t word_at(bt_cluster *c, uint32_t address)
{
    uint32_t word = 0;
    bt_cluster_peek(c, address & ~3u, reinterpret_cast<uint8_t *>(&word), 4);
    return word;
}

// Whether the core's request is granted in this cycle.
bool granted(bt_cluster *c, unsigned number, Port &port, uint64_t cycle)
{
    Vcv32e40p_top *core = port.core;
    if (!port.promised) {
        uint32_t data = core->data_wdata_o;
        int64_t answer =
            bt_access(c, number, cycle, core->data_addr_o, core->data_be_o, core->data_we_o != 0, &data);
        if (answer < 0) {
            return false;
        }
        port.promised = true;
        port.grant = static_cast<uint64_t>(answer);
        port.data = data;
    }
    if (port.grant > cycle) {
        return false;
    }
    port.promised = false;
    return true;
}

}  // namespace

// Runs until so many bytes have been written to the console, or so many cycles have passed; returns the cycle.
extern "C" uint64_t bt_judge(bt_cluster *c, uint64_t cycles, uint32_t bytes)
{
    unsigned n = c->config.cores;
    VerilatedContext context;
    Port ports[BT_CORES];
    for (unsigned i = 0; i < n; i++) {
        Vcv32e40p_top *core = ports[i].core = new Vcv32e40p_top(&context);
        core->clk_i = 0;
        core->rst_ni = 0;
        core->pulp_clock_en_i = 1;
        core->boot_addr_i = c->config.boot;
        core->hart_id_i = i;
        core->fetch_enable_i = 1;
        core->instr_gnt_i = 1;
        for (int k = 0; k < 8; k++) {
            core->clk_i = k & 1;
            core->eval();
        }
        core->clk_i = 0;
        core->rst_ni = 1;
    }
    uint64_t clock = 0;
    for (; clock < cycles && c->out_bytes < bytes && c->report.fault == 0; clock++) {
        uint64_t cycle = clock - FIRST;
        for (unsigned i = 0; i < n; i++) {
            Vcv32e40p_top *core = ports[i].core;
            core->instr_rvalid_i = ports[i].fetched;
            core->instr_rdata_i = ports[i].code;
            core->data_rvalid_i = ports[i].answered;
            core->data_rdata_i = ports[i].data;
            core->data_gnt_i = 0;
            core->eval();
        }
        for (unsigned k = 0; k < n; k++) {
            unsigned i = static_cast<unsigned>((cycle + k) % n);
            Port &port = ports[i];
            port.answered = port.core->data_req_o && granted(c, i, port, cycle);
            port.core->data_gnt_i = port.answered;
        }
        for (unsigned i = 0; i < n; i++) {
            Port &port = ports[i];
            Vcv32e40p_top *core = port.core;
            core->eval();
            port.fetched = core->instr_req_o;
            if (port.fetched) {
                port.code = word_at(c, core->instr_addr_o);
            }
            core->clk_i = 1;
            core->eval();
            core->clk_i = 0;
        }
    }
    for (unsigned i = 0; i < n; i++) {
        ports[i].core->final();
        delete ports[i].core;
    }
    return clock - FIRST;
}
