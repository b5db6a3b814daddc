// What all kernels share. It comes before each of them.
//
// The kernels are plain C++ as well: there, the caller runs one thread after the other, by setting FIRST and THREADS. So
// they are tested without a GPU. On either side, compile without contracting multiplications and additions, so that
// every operation rounds as in the kernels for processors.

#ifdef __CUDACC__
#define FUNCTION __device__ static inline
#define KERNEL extern "C" __global__ void
#define BITS(value) __double_as_longlong(value)
#define DOUBLE(bits) __longlong_as_double(bits)
#define FIRST ((long long)blockIdx.x * blockDim.x + threadIdx.x)
#define THREADS ((long long)gridDim.x * blockDim.x)
#define INFINITE DOUBLE(0x7ff0000000000000LL)
#define UNDECIDED DOUBLE(0x7ff8000000000000LL)
#else
#include <cmath>
#include <cstring>
#define FUNCTION static inline
#define KERNEL extern "C" void
using std::ceil;
using std::copysign;
using std::fabs;
using std::floor;
FUNCTION long long BITS(double value) { long long bits; std::memcpy(&bits, &value, 8); return bits; }
FUNCTION double DOUBLE(long long bits) { double value; std::memcpy(&value, &bits, 8); return value; }
extern "C" { long long FIRST = 0, THREADS = 1; }
#define INFINITE HUGE_VAL
#define UNDECIDED NAN
#endif

const double SMALLEST_DOUBLE = 4.9406564584124654e-324, LARGEST_DOUBLE = 1.7976931348623157e308;

FUNCTION double larger(double a, double b) { return b > a ? b : a; }
FUNCTION double smaller(double a, double b) { return b < a ? b : a; }
// The next double above a non-negative one, and below a positive one.
FUNCTION double above(double k) { return DOUBLE(BITS(k) + 1); }
FUNCTION double below(double k) { return DOUBLE(BITS(k) - 1); }
