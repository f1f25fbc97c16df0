// The rates, limits and facts of a device that predicting time needs. Read from a file, never measured here
// (runtime/calibrate does that). docs/profile_format.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace headroom {

// A measured matrix product: `op` linear, linear_dx or linear_dw (empty = any of these), rows x outs x ins. Two ops
// include more than a product: linear_residual (a residual in fp32 is read and the sum written), and
// linear_cross_entropy_grad (three products and the softmax of a chunk of `rows` rows).
struct ProductSample {
  std::string op;
  DType dtype = DType::f32;
  int64_t rows = 0;
  int64_t outs = 0;
  int64_t ins = 0;
  double flops_per_second = 0;
  std::string multiply;    // attribute "multiply" of the product; empty: in its dtype
  bool disturbed = false;  // all timings were taken while other programs used the same CPUs; the same below
};

// Rates of attention in one dtype, at a sequence length and a head dimension; 0: at any.
struct AttentionRate {
  DType dtype = DType::f32;
  double forward = 0;  // flops per second
  double backward = 0;
  int64_t sequence = 0;
  int64_t head_dim = 0;
  bool disturbed = false;
  std::string kernels;  // of Profile::attention_kernels
};

// The rate of one elementwise op or norm; bf16 when any of its operands is.
struct StreamRate {
  std::string op;
  DType dtype = DType::f32;
  double bytes_per_second = 0;
  bool disturbed = false;
};

// The time of products, elementwise ops and norms of a layer in sequence, divided by their time alone: between ops that
// share cores and caches each finds fewer of its operands nearby. bf16 when any operand is.
struct SequenceFactor {
  DType dtype = DType::f32;
  double factor = 1;
  bool disturbed = false;
};

// The source of rates that headroom has not measured on the device, in words: "products in bf16 of 4096" and who
// measured them, or "estimate".
struct RateSource {
  std::string rates;
  std::string from;
};

// The assumed rate of a disk that was not measured.
inline constexpr double kUnmeasuredDisk = 1e9;

struct Profile {
  std::string name;  // "cpu", "A100-80GB", or the machine's own
  DeviceFacts facts;
  int64_t memory_bytes = 0;        // of the device; 0 = read from the machine
  int64_t context_bytes = 0;       // held by the device's runtime outside the arena
  int64_t host_context_bytes = 0;  // host memory of a GPU's driver and libraries
  std::vector<ProductSample> products;
  std::vector<AttentionRate> attention;
  // For a GPU, by kernel set (cost/attention_rates.h); a direction that was not measured is 0.
  std::vector<AttentionRate> attention_kernels;
  std::vector<StreamRate> streams;
  std::vector<SequenceFactor> in_sequence;               // 1 for a dtype without an entry
  double stream_bytes_per_second = 0;                    // elementwise ops and norms without an entry in `streams`
  double optimizer_bytes_per_second = 0;                 // the fused update
  double softmax_bytes_per_second = 0;                   // the loss's passes over a chunk of logits
  double copy_bytes_per_second = 0;                      // between tiers
  double disk_read_bytes_per_second = kUnmeasuredDisk;   // from a file, past the page cache
  double disk_write_bytes_per_second = kUnmeasuredDisk;  // into one
  double launch_seconds = 0;                             // per kernel call
  std::vector<std::string> disturbed;                    // the disturbed single rates, by their keys in the file
  std::vector<RateSource> sources;                       // of rates that are not this program's own measurements
  uint64_t hash = 0;                                     // of the text it was read from

  // A note that some rates were measured while other programs ran, with the remedy; empty if none was.
  std::string remark() const;
  std::string identity() const;  // "NAME#hash", recorded in plans
};

// Parses a profile; `source` names it in errors. Throws Error(format).
Profile parse_profile(std::string_view json, const std::string& source);
std::string profile_json(const Profile& profile);

// A file's profile, or a shipped one by name. Throws Error(usage) naming the shipped ones.
Profile load_profile(const std::string& file_or_name);

// $XDG_CACHE_HOME/headroom/profile.json (or ~/.cache), for a GPU profile-cuda-N.json; empty if there is no home.
// `accelerator`: its label, "cuda-0" (device/device.h); empty for the CPU.
std::filesystem::path cached_profile_path(std::string_view accelerator = {});

// The profile for `plan` and `train`: `requested` if not empty, else the cached profile of this device if it exists,
// else the shipped "cpu-avx512" or "cpu-avx2" for this machine's CPU, even for a GPU, whose model is not known here.
Profile choose_profile(const std::string& requested, const DeviceFacts& cpu, std::string_view accelerator = {});

}  // namespace headroom
