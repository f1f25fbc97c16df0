#include "api/kept_generator.h"

#include <malloc.h>

#include <utility>

#include "engine/session_share.h"

namespace headroom::api {

KeptGenerator::~KeptGenerator() {
  if (!generator_) return;
  const SessionShare share;
  release();
}

void KeptGenerator::release() {
  std::unique_ptr<TextGenerator> freed;  // after the lock
  const std::lock_guard lock(mutex_);
  freed = std::move(generator_);
}

std::unique_ptr<TextGenerator> KeptGenerator::begin_call() {
  const std::lock_guard lock(mutex_);
  ++calls_;
  return std::move(generator_);
}

void KeptGenerator::end_call(std::unique_ptr<TextGenerator> generator) {
  const std::lock_guard lock(mutex_);
  if (--calls_ == 0 && generator && generator->loaded()) generator_ = std::move(generator);
}

OtherCall::OtherCall(KeptGenerator& kept) : kept_(kept) {
  if (kept_.begin_call()) ::malloc_trim(0);  // after what was kept is freed
}

GenerateCall::GenerateCall(KeptGenerator& kept)
    : kept_(kept), generator_(std::make_unique<TextGenerator>(TextGenerator::Texts::many)) {
  if (std::unique_ptr<TextGenerator> held = kept.begin_call()) generator_ = std::move(held);
}

}  // namespace headroom::api
