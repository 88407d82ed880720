/* As much of Mbed as a program needs that prints, measures time and has a thread; the fifth time that it
 * sleeps ends it. */
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace std::chrono_literals;

class Timer {
public:
    void reset() {}
    void start() {}
    void stop() {}
    std::chrono::microseconds elapsed_time() const { return std::chrono::microseconds(0); }
};

typedef struct {
    uint32_t current_size, max_size, total_size, reserved_size, alloc_cnt, alloc_fail_cnt, overhead_size;
} mbed_stats_heap_t;

typedef struct {
    uint32_t thread_id, max_size, reserved_size, stack_cnt;
} mbed_stats_stack_t;

inline void mbed_stats_heap_get(mbed_stats_heap_t *stats) { *stats = {}; }
inline void mbed_stats_stack_get(mbed_stats_stack_t *stats) { *stats = {}; }

namespace ThisThread {
inline void sleep_for(std::chrono::milliseconds)
{
    static int slept;
    if (++slept == 5)
        std::exit(0);
}
}

#if defined(MBED_CONF_RTOS_PRESENT)

enum osPriority { osPriorityNormal };

/* Two threads, main and one more, which take turns where one has to wait. */
namespace stub {
inline void *waiting; /* the stack pointer of the one that does not run */

__attribute__((naked)) inline void other(void **pointer)
{
    __asm__ volatile("push {r4-r11, lr}\n"
#if defined(__ARM_FP)
                     "vpush {s16-s31}\n"
#endif
                     "ldr r1, [r0]\n"
                     "mov r2, sp\n"
                     "str r2, [r0]\n"
                     "mov sp, r1\n"
#if defined(__ARM_FP)
                     "vpop {s16-s31}\n"
#endif
                     "pop {r4-r11, pc}\n");
}
}

class Thread {
public:
    Thread(osPriority, uint32_t size, unsigned char *memory, const char *) : size_(size), memory_(memory) {}

    void start(void (*function)())
    {
        std::memset(memory_, 0xa5, size_);
        uint32_t *top = reinterpret_cast<uint32_t *>(memory_ + size_);
        *--top = reinterpret_cast<uint32_t>(function);
        top -= 8;
#if defined(__ARM_FP)
        top -= 16;
#endif
        stub::waiting = top;
    }

    uint32_t stack_size() const { return size_; }

    uint32_t max_stack() const
    {
        uint32_t unused = 0;
        while (unused < size_ && memory_[unused] == 0xa5)
            unused++;
        return size_ - unused;
    }

private:
    uint32_t size_;
    unsigned char *memory_;
};

class Semaphore {
public:
    explicit Semaphore(int count) : count_(count) {}
    void release() { count_ = count_ + 1; }

    void acquire()
    {
        while (count_ == 0)
            stub::other(&stub::waiting);
        count_ = count_ - 1;
    }

private:
    volatile int count_;
};

#endif
