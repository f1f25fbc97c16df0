// OpenMPI's transport. Data moves by MPI, sums are formed here: MPI_Allreduce may use any order.
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "comm/process_group.h"

namespace headroom {
namespace {

constexpr size_t kMostBytes = size_t{1} << 30;  // of one MPI call, whose counts are int

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(ErrorKind::run, fmt::format("{} failed: {}", call, std::string_view(text, static_cast<size_t>(length))),
              "check that every process of the job is alive and started with the same options");
}

// Initialises MPI, unless the caller did; finalises it if it initialised it.
class MpiSession {
 public:
  MpiSession() {
    int ready = 0;
    check(MPI_Initialized(&ready), "MPI_Initialized");
    if (ready) return;
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    owned_ = true;
  }
  ~MpiSession() {
    if (owned_) MPI_Finalize();
  }
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

 private:
  bool owned_ = false;
};

class MpiProcessGroup final : public ProcessGroup {
 public:
  explicit MpiProcessGroup(int64_t staging_bytes) {
    check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    HR_CHECK(staging_bytes >= int64_t{64} * size_, "{} bytes of staging for {} processes", staging_bytes, size_);
    // The pieces of all ranks in one call: counts and offsets are int.
    const int64_t piece = std::min<int64_t>(staging_bytes, int64_t{1} << 30) / size_ / 64 * 64;
    piece_bytes_ = static_cast<size_t>(piece);
    staging_.resize(piece_bytes_ * static_cast<size_t>(size_));
    requests_.resize(2 * static_cast<size_t>(size_));
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  // One broadcast per shard, straight into its place: no offset beyond an int, no staging.
  void all_gather(std::span<const std::byte> local, std::span<std::byte> full) override {
    check_covers(local.size(), full.size());
    for (int owner = 0; owner < size_; ++owner) {
      const size_t extent = shard_extent(full.size(), local.size(), owner);
      std::byte* const place = full.data() + (extent == 0 ? 0 : static_cast<size_t>(owner) * local.size());
      if (owner == rank_) std::memcpy(place, local.data(), extent);
      for (size_t done = 0; done < extent; done += kMostBytes)
        check(MPI_Bcast(place + done, static_cast<int>(std::min(kMostBytes, extent - done)), MPI_BYTE, owner,
                        MPI_COMM_WORLD),
              "MPI_Bcast");
    }
  }

  // Piece by piece every rank sends each peer the peer's elements, and adds those that it receives in the order of the
  // ranks.
  void reduce_scatter(std::span<const float> full, std::span<float> local) override {
    check_covers(local.size(), full.size());
    const size_t piece = piece_bytes_ / sizeof(float);
    for (size_t done = 0; done < local.size(); done += piece) {
      exchange(full, local.size(), done, piece);
      const size_t mine = extent(full.size(), local.size(), rank_, done, piece);
      sum_pieces(local.data() + done, mine, piece);
      const size_t end = std::min(local.size(), done + piece);
      std::fill(local.begin() + static_cast<std::ptrdiff_t>(done + mine),
                local.begin() + static_cast<std::ptrdiff_t>(end), 0.0f);
    }
  }

  void all_reduce(std::span<float> values) override { sum_all(values, MPI_FLOAT); }
  void all_reduce(std::span<double> values) override { sum_all(values, MPI_DOUBLE); }

 private:
  void check_covers(size_t local, size_t full) const {
    HR_CHECK(local * static_cast<size_t>(size_) >= full, "{} shards of {} do not cover {}", size_, local, full);
  }

  // Elements of a rank's shard in [done, done + piece) that are in the whole buffer.
  static size_t extent(size_t full, size_t local, int rank, size_t done, size_t piece) {
    const size_t all = shard_extent(full, local, rank);
    return std::min(piece, all - std::min(all, done));
  }

  // Staging slot r receives rank r's addend for this rank's piece.
  void exchange(std::span<const float> full, size_t local, size_t done, size_t piece) {
    const size_t mine = extent(full.size(), local, rank_, done, piece);
    int count = 0;
    for (int peer = 0; peer < size_; ++peer) {
      const size_t theirs = extent(full.size(), local, peer, done, piece);
      const float* const from = full.data() + (theirs == 0 ? 0 : static_cast<size_t>(peer) * local + done);
      if (peer == rank_) {
        std::memcpy(slot(peer), from, mine * sizeof(float));
        continue;
      }
      if (mine > 0)
        check(MPI_Irecv(slot(peer), static_cast<int>(mine), MPI_FLOAT, peer, 0, MPI_COMM_WORLD,
                        &requests_[static_cast<size_t>(count++)]),
              "MPI_Irecv");
      if (theirs > 0)
        check(MPI_Isend(from, static_cast<int>(theirs), MPI_FLOAT, peer, 0, MPI_COMM_WORLD,
                        &requests_[static_cast<size_t>(count++)]),
              "MPI_Isend");
    }
    check(MPI_Waitall(count, requests_.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
  }

  template <typename T>
  void sum_pieces(T* to, size_t count, size_t piece) const {
    const T* const pieces = reinterpret_cast<const T*>(staging_.data());
    for (size_t i = 0; i < count; ++i) {
      T sum = pieces[i];
      for (size_t r = 1; r < static_cast<size_t>(size_); ++r) sum += pieces[r * piece + i];
      to[i] = sum;
    }
  }

  template <typename T>
  void sum_all(std::span<T> values, MPI_Datatype type) {
    const size_t piece = piece_bytes_ / sizeof(T);
    for (size_t done = 0; done < values.size(); done += piece) {
      const size_t count = std::min(piece, values.size() - done);
      check(MPI_Allgather(values.data() + done, static_cast<int>(count), type, staging_.data(), static_cast<int>(count),
                          type, MPI_COMM_WORLD),
            "MPI_Allgather");
      sum_pieces(values.data() + done, count, count);
    }
  }

  std::byte* slot(int peer) { return staging_.data() + static_cast<size_t>(peer) * piece_bytes_; }

  MpiSession session_;
  int rank_ = 0;
  int size_ = 1;
  size_t piece_bytes_ = 0;          // of one rank's slot
  std::vector<std::byte> staging_;  // one slot per rank
  std::vector<MPI_Request> requests_;
};

}  // namespace

bool has_mpi() { return true; }

std::unique_ptr<ProcessGroup> make_mpi_process_group(int64_t staging_bytes) {
  return std::make_unique<MpiProcessGroup>(staging_bytes);
}

}  // namespace headroom
