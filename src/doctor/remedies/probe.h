// Measuring instead of estimating: a script for the user's own PyTorch, and what two batch sizes say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace headroom::doctor {

// A Python script that runs any PyTorch program at two batch sizes, each in a process of its own, and prints a line of
// JSON per size. It needs the standard library and the program's own torch: memory statistics are read around
// Optimizer.step() and backward(), which gives the stage of the peak, and the program is ended after a few steps.
std::string probe_script();

struct ProbePoint {
  double batch = 0;
  int64_t peak_bytes = 0;      // torch.cuda.max_memory_allocated()
  int64_t reserved_bytes = 0;  // torch.cuda.max_memory_reserved(), 0 when not printed
  int64_t outside_bytes = 0;   // of the device: used less reserved, 0 when not printed
  std::string stage;           // of the peak: start, forward, backward, optimizer_step; empty when not printed
};

// The points in a text: lines of JSON with "batch" and "peak_bytes" (others are passed over). Throws Error(format) when
// there are fewer than two different batch sizes.
std::vector<ProbePoint> read_probe(const std::string& text, const std::string& source);

struct ProbeFit {
  double fixed_bytes = 0;       // weights, gradients, states, context, what PyTorch holds unused
  double per_sample_bytes = 0;  // activations
  double residual_bytes = 0;    // largest distance of a point from the line
};

// The line through two points, of least squares through more. Weights, gradients and states do not depend on the batch,
// activations are proportional to it.
ProbeFit fit_probe(const std::vector<ProbePoint>& points);

// The stage of the peak at the largest batch measured; empty when not printed.
std::string stage_of_peak(const std::vector<ProbePoint>& points);

// The largest batch whose peak fits into `capacity_bytes`; 0 when not even one sample does; at most 2^20.
int64_t largest_batch(const ProbeFit& fit, int64_t capacity_bytes);

}  // namespace headroom::doctor
