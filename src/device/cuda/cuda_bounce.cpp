#include "device/cuda/cuda_bounce.h"

#include <memory>

#include "base/error.h"

namespace headroom {

CudaBounce::CudaBounce(CudaRuntime& runtime, CudaStream queue, size_t places)
    : runtime_(runtime), queue_(queue), moves_(runtime.create_stream()), marks_(places) {
  for (CudaEvent& mark : marks_) mark = runtime_.create_event();
  for (Buffer& buffer : buffers_) buffer.moved = runtime_.create_event();
}

void CudaBounce::take(std::span<std::byte> pinned) {
  void* at = pinned.data();
  size_t space = pinned.size();
  HR_CHECK(std::align(static_cast<size_t>(kDiskBlockBytes), buffers_.size() * bytes(), at, space),
           "{} bytes for {} buffers of {}", pinned.size(), buffers_.size(), bytes());
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].memory = static_cast<std::byte*>(at) + i * bytes();
}

CudaBounce::~CudaBounce() {
  for (const Buffer& buffer : buffers_) runtime_.destroy(buffer.moved);
  for (CudaEvent mark : marks_) runtime_.destroy(mark);
  runtime_.destroy(moves_);
}

void CudaBounce::begin(size_t place) {
  runtime_.enter_thread();
  runtime_.wait(moves_, marks_.at(place));
}

std::span<std::byte> CudaBounce::await(size_t index) {
  runtime_.synchronize(buffers_.at(index).moved);
  return {buffers_[index].memory, bytes()};
}

void CudaBounce::load(size_t index, std::span<std::byte> part, const std::byte* from) {
  move(index, part.data(), from, part.size());
}

void CudaBounce::store(size_t index, std::span<const std::byte> part, std::byte* to) {
  move(index, to, part.data(), part.size());
}

void CudaBounce::move(size_t index, std::byte* to, const std::byte* from, size_t bytes) {
  runtime_.copy(to, from, static_cast<int64_t>(bytes), moves_);
  runtime_.record(buffers_.at(index).moved, moves_);
}

}  // namespace headroom
