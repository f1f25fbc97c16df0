// The processes that share one model: their collectives, with sums in the order of the ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/device.h"

namespace headroom {

// Every rank makes the same calls in the same order with the same sizes; a call returns when its result is available.
// Sums are formed in the order of the ranks: every rank gets the same bits, and so does every run. Shard r of a whole
// buffer starts at r * local.size(). No heap call after construction. Not thread-safe. Implementations throw Error(run)
// if a peer or the transport fails.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Fills `full` with the shards of all ranks; elements past its end are dropped.
  virtual void all_gather(std::span<const std::byte> local, std::span<std::byte> full) = 0;
  // Sums `full` over the ranks and keeps this rank's shard; elements past the end of `full` become zero.
  virtual void reduce_scatter(std::span<const float> full, std::span<float> local) = 0;
  // Sums in place, on every rank.
  virtual void all_reduce(std::span<float> values) = 0;
  virtual void all_reduce(std::span<double> values) = 0;
};

// A group of one: copies.
std::unique_ptr<ProcessGroup> make_single_process_group();

// All processes that mpirun started. The first group initialises MPI, and its destructor finalises it: make one per
// process. `staging_bytes` is the group's own memory, in addition to MPI's; at least 64 bytes per rank. Throws
// Error(usage) if this build has no MPI, Error(run) if MPI fails.
std::unique_ptr<ProcessGroup> make_mpi_process_group(int64_t staging_bytes = int64_t{1} << 20);

// Whether this build has MPI.
bool has_mpi();

// Elements of a whole buffer of `full` elements that are in shard `rank` of `local` elements.
inline size_t shard_extent(size_t full, size_t local, int rank) {
  const size_t begin = std::min(full, static_cast<size_t>(rank) * local);
  return std::min(local, full - begin);
}

}  // namespace headroom
