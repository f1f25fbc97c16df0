// Measures the limits of this machine: oneDNN's GEMM rates (not those of our kernels), and the memory's read and copy
// bandwidth. Prints one JSON object to stdout, in flops and bytes per second: each is the median of at least three runs
// in at least 1.5 s. A copy counts the bytes read and the bytes written. On a CPU whose oneDNN has no product of bf16
// operands (AVX2) they have to be widened, so the limit of bf16 is that of fp32.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kSecondsPerLimit = 1.5;

// The median rate of runs that each do `work` units, in units per second.
template <typename Run>
double median_rate(double work, const Run& run) {
  run();
  std::vector<double> rates;
  const auto since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  const Clock::time_point begin = Clock::now();
  while (rates.size() < 3 || since(begin) < kSecondsPerLimit) {
    const Clock::time_point start = Clock::now();
    run();
    rates.push_back(work / since(start));
  }
  std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2), rates.end());
  return rates[rates.size() / 2];
}

// A square product [n, n] x [n, n] into f32, with the weights in the layout that oneDNN prefers: its peak rate.
double gemm_rate(const dnnl::engine& engine, dnnl::memory::data_type dtype, dnnl::memory::dim n) {
  using Tag = dnnl::memory::format_tag;
  const dnnl::memory::desc left({n, n}, dtype, Tag::ab), any({n, n}, dtype, Tag::any), plain({n, n}, dtype, Tag::ab),
      out({n, n}, dnnl::memory::data_type::f32, Tag::ab);
  const dnnl::matmul::primitive_desc desc(dnnl::matmul::desc(left, any, out), engine);
  dnnl::stream stream(engine);
  dnnl::memory a(left, engine), b(plain, engine), packed(desc.weights_desc(), engine), c(out, engine);
  const uint32_t one = dtype == dnnl::memory::data_type::f32 ? 0x3f800000u : 0x3f803f80u;
  for (const dnnl::memory& memory : {a, b}) {
    auto* words = static_cast<uint32_t*>(memory.get_data_handle());
    std::fill_n(words, memory.get_desc().get_size() / sizeof(uint32_t), one);
  }
  dnnl::reorder(b, packed).execute(stream, b, packed);
  stream.wait();
  dnnl::matmul matmul(desc);
  const double flops = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  return median_rate(flops, [&] {
    matmul.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, c}});
    stream.wait();
  });
}

double bf16_rate(const dnnl::engine& engine, double f32) try {
  return gemm_rate(engine, dnnl::memory::data_type::bf16, 2048);
} catch (const dnnl::error& error) {
  if (error.status != dnnl_unimplemented) throw;
  return f32;
}

// Eight streams per thread, like a kernel that reads several tensors: one stream leaves most of the bandwidth unused.
__attribute__((target_clones("avx512f", "avx2", "default"))) uint64_t sum_words(const uint64_t* words, size_t count) {
  constexpr size_t kStreams = 8, kLanes = 8;
  uint64_t sums[kStreams][kLanes] = {};
  const size_t each = count / kStreams;
  for (size_t i = 0; i + kLanes <= each; i += kLanes)
    for (size_t stream = 0; stream < kStreams; ++stream)
      for (size_t lane = 0; lane < kLanes; ++lane) sums[stream][lane] += words[stream * each + i + lane];
  uint64_t sum = 0;
  for (const auto& part : sums)
    for (uint64_t lane : part) sum += lane;
  return sum;
}

double read_rate(const std::vector<uint64_t>& buffer) {
  volatile uint64_t sink = 0;
  return median_rate(static_cast<double>(buffer.size() * sizeof(uint64_t)), [&] {
    uint64_t sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
      const size_t parts = static_cast<size_t>(omp_get_num_threads()), part = static_cast<size_t>(omp_get_thread_num());
      const size_t begin = buffer.size() * part / parts, end = buffer.size() * (part + 1) / parts;
      sum += sum_words(buffer.data() + begin, end - begin);
    }
    sink = sum;
  });
}

double copy_rate(const std::vector<uint64_t>& from, std::vector<uint64_t>& to) {
  const size_t half = from.size();
  return median_rate(static_cast<double>(2 * half * sizeof(uint64_t)), [&] {
#pragma omp parallel
    {
      const size_t parts = static_cast<size_t>(omp_get_num_threads()), part = static_cast<size_t>(omp_get_thread_num());
      const size_t begin = half * part / parts, end = half * (part + 1) / parts;
      std::memcpy(to.data() + begin, from.data() + begin, (end - begin) * sizeof(uint64_t));
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) omp_set_num_threads(std::max(1, std::stoi(argv[1])));
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const double f32 = gemm_rate(engine, dnnl::memory::data_type::f32, 1024);
  const double bf16 = bf16_rate(engine, f32);
  std::vector<uint64_t> buffer(size_t{32} << 20, 1), other(buffer.size());
  const double read = read_rate(buffer), copy = copy_rate(buffer, other);
  std::printf(
      "{\"threads\": %d, \"f32_flops_per_second\": %.4g, \"bf16_flops_per_second\": %.4g, "
      "\"read_bytes_per_second\": %.4g, \"copy_bytes_per_second\": %.4g}\n",
      argc > 1 ? std::stoi(argv[1]) : omp_get_max_threads(), f32, bf16, read, copy);
  return 0;
}
