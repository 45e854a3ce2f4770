/* What this processor's AES and carry-less multiplication can do: cycles of one instruction among
 * independent ones, of the mixes that AES-128-GCM is made of, and the clock. Each figure is the best
 * of many short runs.
 *
 * Lines: "clock GHz", then "BITS vaesenc vpclmulqdq schoolbook karatsuba end chacha": the last four are
 * the cycles of 10 vaesenc with 4 vpclmulqdq, with 3 and 6 cheap operations, and with 5, and those of two
 * of the four steps that ChaCha20's quarter rounds have, four quarters at once: 8 additions, 8 xors and 8
 * rotations (without AVX-512, a rotation by 16 or 8 bits is a byte shuffle and every other three
 * operations). */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* So many that the start of a loop does not show: with 200, mixes took 10 to 20 % longer on Zen 3. */
#define REPEAT 4000

/* Nanoseconds of one repetition of the body. */
#define BEST(body)                                                       \
    ({                                                                        \
        double best = 1e9;                                                    \
        for (int trial = 0; trial < 3000; trial++) {                          \
            uint64_t count = REPEAT / 4;                                      \
            double begun = now();                                             \
            __asm__ volatile("1:\n.rept 4\n" body ".endr\n"                   \
                             "dec %0\njnz 1b\n"                               \
                             : "+r"(count)                                    \
                             :                                                \
                             : "cc", "rax", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",  \
                               "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",        \
                               "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",   \
                               "xmm15");                                      \
            double took = now() - begun;                                      \
            if (took < best) best = took;                                     \
        }                                                                     \
        best / REPEAT;                                                        \
    })

#define AES(r, n) "vaesenc %%" r "15,%%" r #n ",%%" r #n "\n"
#define AES10(r) \
    AES(r, 0) AES(r, 1) AES(r, 2) AES(r, 3) AES(r, 4) AES(r, 5) AES(r, 6) AES(r, 7) AES(r, 8) AES(r, 9)
#define MULTIPLY(r, n) "vpclmulqdq $1,%%" r "14,%%" r "15,%%" r #n "\n"
#define CHEAP(r) "vpshufb %%" r "14,%%" r "15,%%" r "13\n"
#define XOR(r, xor) xor " %%" r "14,%%" r "15,%%" r "13\n"
#define M3(r) MULTIPLY(r, 10) MULTIPLY(r, 11) MULTIPLY(r, 12)

#define WORD(op, r) op " %%" r "14,%%" r "15,%%" r "13\n"
#define ALL4(of, ...) of(__VA_ARGS__) of(__VA_ARGS__) of(__VA_ARGS__) of(__VA_ARGS__)
#define SHIFT(op, r, bits) op " $" bits ",%%" r "15,%%" r "13\n"
#define ROTATE(r) SHIFT("vprold", r, "7")
#define SHIFTED(r, or) SHIFT("vpslld", r, "7") SHIFT("vpsrld", r, "25") WORD(or, r)
#define STEPS(r, xor, rotations)                                                           \
    ALL4(WORD, "vpaddd", r) ALL4(WORD, "vpaddd", r) ALL4(WORD, xor, r) ALL4(WORD, xor, r) rotations
#define ROTATIONS_BY_SHIFTS(r) ALL4(CHEAP, r) ALL4(SHIFTED, r, "vpor")
#define ROTATIONS(r) ALL4(ROTATE, r) ALL4(ROTATE, r)

#define WIDTH(bits, r, xor, rotations)                                                                \
    printf("%d %.3f %.3f %.3f %.3f %.3f %.3f\n", bits, BEST(AES10(r)) * clock / 10,             \
           BEST(M3(r) MULTIPLY(r, 13)) * clock / 4,                                        \
           BEST(AES10(r) M3(r) MULTIPLY(r, 13)) * clock,                                   \
           BEST(AES10(r) M3(r) XOR(r, xor) XOR(r, xor) XOR(r, xor) XOR(r, xor) XOR(r, xor) \
                    CHEAP(r)) * clock,                                                     \
           BEST(AES10(r) M3(r) MULTIPLY(r, 13) MULTIPLY(r, 13)) * clock,                   \
           BEST(STEPS(r, xor, rotations)) * clock)

int main(void) {
    double clock = 8 / BEST("add $1,%%rax\nadd $1,%%rax\nadd $1,%%rax\nadd $1,%%rax\n"
                            "add $1,%%rax\nadd $1,%%rax\nadd $1,%%rax\nadd $1,%%rax\n");
    printf("clock %.3f\n", clock);
    if (__builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul") &&
        __builtin_cpu_supports("avx"))
        WIDTH(128, "xmm", "vpxor", ROTATIONS_BY_SHIFTS("xmm"));
    if (__builtin_cpu_supports("vaes") && __builtin_cpu_supports("vpclmulqdq")) {
        WIDTH(256, "ymm", "vpxor", ROTATIONS_BY_SHIFTS("ymm"));
        if (__builtin_cpu_supports("avx512bw")) WIDTH(512, "zmm", "vpxorq", ROTATIONS("zmm"));
    }
    return 0;
}
