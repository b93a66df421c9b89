/* One instruction of a processor as a device: `cpu_device NAME` reads rows a[0..K), b[0..K), c from standard input and
   writes d for each to standard output, every number as 64 bits, little-endian, the pattern in the low bits.
   Status 3: this processor, or the build, has no such instruction. NAME is the end of a unit's reference. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef uint64_t pattern;
#define MISSING 3

static inline float as_f32(pattern x) { uint32_t bits = (uint32_t)x; float y; memcpy(&y, &bits, 4); return y; }
static inline pattern of_f32(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }
static inline uint32_t four(const pattern *x) { return (uint32_t)(x[0] | x[1] << 8 | x[2] << 16 | x[3] << 24); }
static inline void narrow(const pattern *from, uint16_t *to, int count) {
  for (int k = 0; k < count; k++) to[k] = (uint16_t)from[k];
}

#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#define USES(...) __attribute__((target(__VA_ARGS__)))
#define IN_MEMORY __asm__ volatile("" : : : "memory") /* the intrinsics of tiles do not say what they read and write */

/* one output: c is a tile of 1 x 1, a of 1 x 32 elements, b of 16 pairs; the kernel lends tiles on request alone */
USES("amx-tile")
static void tiles(const pattern *a, const pattern *b, pattern c, uint16_t *row, uint16_t *column, float *sum) {
  static int lent;
  static struct { uint8_t palette, start, zero[14]; uint16_t bytes[16]; uint8_t rows[16]; } shape;
  if (!lent) {
    if (syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* tile data */)) _exit(MISSING);
    shape.palette = 1;
    shape.rows[0] = 1, shape.bytes[0] = 4;
    shape.rows[1] = 1, shape.bytes[1] = 64;
    shape.rows[2] = 16, shape.bytes[2] = 4;
    IN_MEMORY;
    _tile_loadconfig(&shape);
    lent = 1;
  }
  narrow(a, row, 32), narrow(b, column, 32);
  *sum = as_f32(c);
  IN_MEMORY;
  _tile_loadd(0, sum, 4);
  _tile_loadd(1, row, 64);
  _tile_loadd(2, column, 4);
}

USES("amx-tile,amx-bf16") static pattern tdpbf16ps(const pattern *a, const pattern *b, pattern c) {
  uint16_t row[32], column[32];
  float sum;
  tiles(a, b, c, row, column, &sum);
  _tile_dpbf16ps(0, 1, 2);
  _tile_stored(0, &sum, 4);
  IN_MEMORY;
  return of_f32(sum);
}

USES("amx-tile") static pattern tdpfp16ps(const pattern *a, const pattern *b, pattern c) {
  uint16_t row[32], column[32];
  float sum;
  tiles(a, b, c, row, column, &sum);
  __asm__ volatile(".byte 0xc4, 0xe2, 0x6b, 0x5c, 0xc1"); /* tdpfp16ps tmm0, tmm1, tmm2: older assemblers lack it */
  _tile_stored(0, &sum, 4);
  IN_MEMORY;
  return of_f32(sum);
}

USES("avx512bf16,avx512vl") static pattern vdpbf16ps(const pattern *a, const pattern *b, pattern c) {
  __m128i x = _mm_cvtsi32_si128((int)(a[0] | a[1] << 16)), y = _mm_cvtsi32_si128((int)(b[0] | b[1] << 16));
  return of_f32(_mm_cvtss_f32(_mm_dpbf16_ps(_mm_set_ss(as_f32(c)), (__m128bh)x, (__m128bh)y)));
}

USES("avx512fp16,avx512vl") static pattern vfmadd_ph(const pattern *a, const pattern *b, pattern c) {
  __m128h x = (__m128h)_mm_cvtsi32_si128((int)a[0]), y = (__m128h)_mm_cvtsi32_si128((int)b[0]);
  __m128h z = (__m128h)_mm_cvtsi32_si128((int)c);
  return (uint16_t)_mm_cvtsi128_si32((__m128i)_mm_fmadd_ph(x, y, z));
}

/* integers: a tile of 1 x 1, a of 1 x 64 elements, b of 16 times four */
#define TILE(name) USES("amx-tile,amx-int8") static pattern name(const pattern *a, const pattern *b, pattern c) { \
  pattern x[32], y[32]; \
  uint16_t row[32], column[32]; \
  float sum; \
  for (int k = 0; k < 32; k++) x[k] = a[2 * k] | a[2 * k + 1] << 8, y[k] = b[2 * k] | b[2 * k + 1] << 8; \
  tiles(x, y, c, row, column, &sum); \
  _tile_dp##name##d(0, 1, 2); \
  _tile_stored(0, &sum, 4); \
  IN_MEMORY; \
  return of_f32(sum); \
}
TILE(bss) TILE(bsu) TILE(bus) TILE(buu)

#define LANE(name, needs, function) USES(needs) static pattern name(const pattern *a, const pattern *b, pattern c) { \
  __m128i x = _mm_cvtsi32_si128((int)four(a)), y = _mm_cvtsi32_si128((int)four(b)); \
  return (uint32_t)_mm_cvtsi128_si32(function(_mm_cvtsi32_si128((int)c), x, y)); \
}
LANE(vpdpbusd, "avx512vnni,avx512vl", _mm_dpbusd_epi32)
LANE(vpdpbusds, "avx512vnni,avx512vl", _mm_dpbusds_epi32)
#define BYTES(name, opcode) /* name xmm0, xmm1, xmm2: older compilers lack it */ \
  static inline __m128i name(__m128i sum, __m128i left, __m128i right) { \
    register __m128i c __asm__("xmm0") = sum, x __asm__("xmm1") = left, y __asm__("xmm2") = right; \
    __asm__ volatile(".byte 0xc4, 0xe2, 0x73, " opcode ", 0xc2" : "+x"(c) : "x"(x), "x"(y)); \
    return c; \
  }
BYTES(dpbssd, "0x50")
BYTES(dpbssds, "0x51")
LANE(vpdpbssd, "avx2", dpbssd)
LANE(vpdpbssds, "avx2", dpbssds)

USES("fma") static pattern f32(const pattern *a, const pattern *b, pattern c) {
  return of_f32(_mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(as_f32(a[0])), _mm_set_ss(as_f32(b[0])), _mm_set_ss(as_f32(c)))));
}

USES("fma") static pattern f64(const pattern *a, const pattern *b, pattern c) {
  __m128i x = _mm_cvtsi64_si128((long long)a[0]), y = _mm_cvtsi64_si128((long long)b[0]);
  __m128d sum = _mm_fmadd_sd((__m128d)x, (__m128d)y, (__m128d)_mm_cvtsi64_si128((long long)c));
  return (pattern)_mm_cvtsi128_si64((__m128i)sum);
}

USES("sse4.1") static pattern dpps(const pattern *a, const pattern *b, pattern c) {
  (void)c;
  __m128 x = _mm_setr_ps(as_f32(a[0]), as_f32(a[1]), as_f32(a[2]), as_f32(a[3]));
  __m128 y = _mm_setr_ps(as_f32(b[0]), as_f32(b[1]), as_f32(b[2]), as_f32(b[3]));
  return of_f32(_mm_cvtss_f32(_mm_dp_ps(x, y, 0xf1)));
}

#define ROWS {"tdpbf16ps", 32, tdpbf16ps}, {"tdpfp16ps", 32, tdpfp16ps}, {"vdpbf16ps", 2, vdpbf16ps}, \
  {"tdpbssd", 64, bss}, {"tdpbsud", 64, bsu}, {"tdpbusd", 64, bus}, {"tdpbuud", 64, buu}, \
  {"vpdpbusd", 4, vpdpbusd}, {"vpdpbusds", 4, vpdpbusds}, {"vpdpbssd", 4, vpdpbssd}, {"vpdpbssds", 4, vpdpbssds}, \
  {"vfmadd-ph", 1, vfmadd_ph}, {"f32", 1, f32}, {"f64", 1, f64}, {"dpps", 4, dpps}

#elif defined(__aarch64__) /* -march=armv8.6-a+fp16fml; SME needs no flag */
#include <arm_neon.h>

static void load(const pattern *from, uint16_t *to, int count) { memset(to, 0, 16), narrow(from, to, count); }
#define EXTEND(count) uint16_t x[8], y[8]; load(a, x, count), load(b, y, count); \
  float z[4] = {as_f32(c)}; float32x4_t sum = vld1q_f32(z)
#define BF16(x) vreinterpretq_bf16_u16(vld1q_u16(x))
#define F16(x) vreinterpretq_f16_u16(vld1q_u16(x))

static pattern bfdot(const pattern *a, const pattern *b, pattern c) {
  EXTEND(2);
  return of_f32(vgetq_lane_f32(vbfdotq_f32(sum, BF16(x), BF16(y)), 0));
}

static pattern bfmmla(const pattern *a, const pattern *b, pattern c) {
  EXTEND(4);
  return of_f32(vgetq_lane_f32(vbfmmlaq_f32(sum, BF16(x), BF16(y)), 0));
}

static pattern bfmlalb(const pattern *a, const pattern *b, pattern c) {
  EXTEND(1);
  return of_f32(vgetq_lane_f32(vbfmlalbq_f32(sum, BF16(x), BF16(y)), 0));
}

static pattern bfmlalt(const pattern *a, const pattern *b, pattern c) {
  EXTEND(1);
  x[1] = x[0], y[1] = y[0], x[0] = y[0] = 0;
  return of_f32(vgetq_lane_f32(vbfmlaltq_f32(sum, BF16(x), BF16(y)), 0));
}

static pattern fmlal(const pattern *a, const pattern *b, pattern c) {
  EXTEND(1);
  return of_f32(vgetq_lane_f32(vfmlalq_low_f16(sum, F16(x), F16(y)), 0));
}

/* integers: the first row and the first column of two times eight bytes */
#define MATRIX(name, x_kind, y_kind, sum_kind, function) \
  static pattern name(const pattern *a, const pattern *b, pattern c) { \
    uint32_t x[4] = {four(a), four(a + 4)}, y[4] = {four(b), four(b + 4)}, z[4] = {(uint32_t)c}; \
    uint32x4_t sum = vreinterpretq_u32_##sum_kind##32(function(vreinterpretq_##sum_kind##32_u32(vld1q_u32(z)), \
        vreinterpretq_##x_kind##8_u32(vld1q_u32(x)), vreinterpretq_##y_kind##8_u32(vld1q_u32(y)))); \
    return vgetq_lane_u32(sum, 0); \
  }
#define vreinterpretq_u32_u32(x) (x)
MATRIX(smmla, s, s, s, vmmlaq_s32)
MATRIX(ummla, u, u, u, vmmlaq_u32)
MATRIX(usmmla, u, s, s, vusmmlaq_s32)

static void extended(void) { /* FPCR.EBF = 1; a processor without it reads back 0 */
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  if (control >> 13 & 1) return;
  __asm__ volatile("msr fpcr, %0" : : "r"(control | 1 << 13));
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  if (!(control >> 13 & 1)) _exit(MISSING);
}

static pattern bfdot_ebf(const pattern *a, const pattern *b, pattern c) { extended(); return bfdot(a, b, c); }
static pattern bfmmla_ebf(const pattern *a, const pattern *b, pattern c) { extended(); return bfmmla(a, b, c); }

/* SME: the predicate has one place of the tile alone, so that its neighbours are neither read nor written. SMSTART turns
   ZA and streaming mode on, SMSTOP both off; either loses what all vector and predicate registers held. Words, because
   older assemblers lack the mnemonics, which name x0, x1, x2 and w12 */
#define VECTORS "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", \
  "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", \
  "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15"
#define WORD(instruction) ".inst " instruction "\n"
#define SINGLE WORD("0x2558e040") /* ptrue p0.h, vl2: two halves, one word */ LOAD_SINGLE
#define QUARTERS WORD("0x2518e080") /* ptrue p0.b, vl4 */ LOAD_SINGLE
#define STORE_QUARTERS STORE_SINGLE
#define LOAD_SINGLE WORD("0xa540a000") /* ld1w {z0.s}, p0/z, [x0] */ \
  WORD("0xa540a021") /* ld1w {z1.s}, p0/z, [x1] */ \
  WORD("0xe09f0040") /* ld1w {za0h.s[w12, 0]}, p0/z, [x2] */
#define STORE_SINGLE WORD("0xe0bf0040") /* st1w {za0h.s[w12, 0]}, p0, [x2] */
#define DOUBLE WORD("0x25d8e020") /* ptrue p0.d, vl1 */ \
  WORD("0xa5e0a000") /* ld1d {z0.d}, p0/z, [x0] */ \
  WORD("0xa5e0a021") /* ld1d {z1.d}, p0/z, [x1] */ \
  WORD("0xe0df0040") /* ld1d {za0h.d[w12, 0]}, p0/z, [x2] */
#define STORE_DOUBLE WORD("0xe0ff0040") /* st1d {za0h.d[w12, 0]}, p0, [x2] */
#define OUTER(name, factors, size, instruction) \
  static pattern name(const pattern *a, const pattern *b, pattern c) { \
    pattern x = factors(a), y = factors(b); \
    register const pattern *first __asm__("x0") = &x, *second __asm__("x1") = &y; \
    register pattern *sum __asm__("x2") = &c; \
    __asm__ volatile( \
        WORD("0xd503477f") /* smstart */ "mov w12, wzr\n" size WORD(instruction) STORE_##size \
        WORD("0xd503467f") /* smstop */ \
        : : "r"(first), "r"(second), "r"(sum) : "x12", "memory", VECTORS); \
    return c; \
  }
#define PAIR(x) ((x)[0] | (x)[1] << 16)
#define FIRST(x) (*(x))
OUTER(fmopa_f32, FIRST, SINGLE, "0x80810000") /* fmopa za0.s, p0/m, p0/m, z0.s, z1.s */
OUTER(fmopa_f64, FIRST, DOUBLE, "0x80c10000") /* fmopa za0.d, p0/m, p0/m, z0.d, z1.d */
OUTER(fmopa_f16f32, PAIR, SINGLE, "0x81a10000") /* fmopa za0.s, p0/m, p0/m, z0.h, z1.h */
OUTER(bfmopa, PAIR, SINGLE, "0x81810000") /* bfmopa za0.s, p0/m, p0/m, z0.h, z1.h */
OUTER(smopa, four, QUARTERS, "0xa0810000") /* smopa za0.s, p0/m, p0/m, z0.b, z1.b */
OUTER(usmopa, four, QUARTERS, "0xa1810000") /* usmopa za0.s, p0/m, p0/m, z0.b, z1.b */

static pattern bfmopa_ebf(const pattern *a, const pattern *b, pattern c) { extended(); return bfmopa(a, b, c); }

#define ROWS {"bfdot", 2, bfdot}, {"bfmmla", 4, bfmmla}, {"bfmlalb", 1, bfmlalb}, {"bfmlalt", 1, bfmlalt}, \
  {"fmlal", 1, fmlal}, {"bfdot-ebf", 2, bfdot_ebf}, {"bfmmla-ebf", 4, bfmmla_ebf}, {"fmopa-f32", 1, fmopa_f32}, \
  {"fmopa-f64", 1, fmopa_f64}, {"fmopa-f16f32", 2, fmopa_f16f32}, {"bfmopa", 2, bfmopa}, {"bfmopa-ebf", 2, bfmopa_ebf}, \
  {"smmla", 8, smmla}, {"ummla", 8, ummla}, {"usmmla", 8, usmmla}, {"smopa", 4, smopa}, {"usmopa", 4, usmopa}

#elif defined(__powerpc64__) /* -mcpu=power10 */
#include <altivec.h>

typedef __vector unsigned char bytes;
typedef __vector unsigned int words;

/* every word of the factors is the same, so every place of the accumulator is; the first of a pair is the upper half */
static bytes pairs(const pattern *x) { return (bytes)vec_splats((unsigned int)(x[0] << 16 | x[1])); }
static bytes singles(pattern x) { return (bytes)vec_splats((unsigned int)x); }
#define OUTER(name, load, builtin) \
  static pattern name(const pattern *a, const pattern *b, pattern c) { \
    __vector_quad sum; \
    words out[4]; \
    bytes addend = singles(c); \
    __builtin_mma_build_acc(&sum, addend, addend, addend, addend); \
    builtin(&sum, load(a), load(b)); \
    __builtin_mma_disassemble_acc(out, &sum); \
    return out[0][0]; \
  }
#define FIRST(x) singles(*(x))
OUTER(xvbf16ger2pp, pairs, __builtin_mma_xvbf16ger2pp)
OUTER(xvf16ger2pp, pairs, __builtin_mma_xvf16ger2pp)
OUTER(xvf32gerpp, FIRST, __builtin_mma_xvf32gerpp)

#define ROWS {"xvbf16ger2pp", 2, xvbf16ger2pp}, {"xvf16ger2pp", 2, xvf16ger2pp}, {"xvf32gerpp", 1, xvf32gerpp}

#elif defined(__riscv) /* -march=rv64gcv */

static pattern vfwmaccbf16(const pattern *a, const pattern *b, pattern c) {
  uint16_t x = (uint16_t)a[0], y = (uint16_t)b[0];
  uint32_t sum = (uint32_t)c;
  __asm__ volatile(
      "vsetivli zero, 1, e32, m1, ta, ma\n vle32.v v12, (%2)\n vsetivli zero, 1, e16, m1, ta, ma\n vle16.v v8, (%0)\n"
      "vle16.v v10, (%1)\n .word 0xeea41657\n" /* vfwmaccbf16.vv v12, v8, v10: older assemblers lack it */
      "vsetivli zero, 1, e32, m1, ta, ma\n vse32.v v12, (%2)\n"
      : : "r"(&x), "r"(&y), "r"(&sum) : "memory");
  return sum;
}

#define ROWS {"vfwmaccbf16", 1, vfwmaccbf16}
#endif

typedef pattern step_of(const pattern *a, const pattern *b, pattern c);
static const struct { const char *name; int length; step_of *step; } rows[] = {
#ifdef ROWS
  ROWS,
#endif
  {0, 0, 0}};

static void missing(int signal) { (void)signal; _exit(MISSING); }

int main(int count, char **arguments) {
  pattern in[129], out;
  signal(SIGILL, missing);
  for (int i = 0; count > 1 && rows[i].name; i++) {
    if (strcmp(rows[i].name, arguments[1])) continue;
    int k = rows[i].length;
    while (fread(in, sizeof(pattern), (size_t)(2 * k + 1), stdin) == (size_t)(2 * k + 1)) {
      out = rows[i].step(in, in + k, in[2 * k]);
      fwrite(&out, sizeof out, 1, stdout);
    }
    return fflush(stdout) ? 1 : 0;
  }
  return MISSING;
}
