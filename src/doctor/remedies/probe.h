// Measures instead of estimating: a script for the user's PyTorch program, and what two batch sizes show.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headroom::doctor {

// A Python script that runs any PyTorch program at two batch sizes, in a process each, and prints a line of JSON per
// size. It needs only the standard library and the program's own torch. It reads memory statistics around
// Optimizer.step() and backward(), which gives the stage of the peak, and ends the program after a few steps.
std::string probe_script();

struct ProbePoint {
  double batch = 0;
  int64_t peak_bytes = 0;      // torch.cuda.max_memory_allocated()
  int64_t reserved_bytes = 0;  // torch.cuda.max_memory_reserved(); 0 when not printed
  int64_t outside_bytes = 0;   // memory of the device in use that PyTorch has not reserved; 0 when not printed
  std::string stage;           // stage of the peak: start, forward, backward, optimizer_step; empty when not printed
};

// The measurements in a text: JSON lines with "batch" and "peak_bytes" (others are skipped). Throws Error(format) when
// there are fewer than two different batch sizes.
std::vector<ProbePoint> read_probe(const std::string& text, const std::string& source);

struct ProbeFit {
  double fixed_bytes = 0;       // weights, gradients, states, context, unused memory that PyTorch holds
  double per_sample_bytes = 0;  // activations
  double residual_bytes = 0;    // largest distance of a measurement from the line
};

// The line through two measurements, by least squares through more. Weights, gradients and states do not depend on the
// batch; activations are proportional to it.
ProbeFit fit_probe(const std::vector<ProbePoint>& points);

// The stage of the peak at the largest measured batch; empty when not printed.
std::string stage_of_peak(const std::vector<ProbePoint>& points);

// The largest batch whose peak fits in `capacity_bytes`; 0 when not even one sample fits; at most 2^20.
int64_t largest_batch(const ProbeFit& fit, int64_t capacity_bytes);

}  // namespace headroom::doctor
