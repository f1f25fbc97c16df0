// The model that a session keeps loaded from one generate() to the next.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "engine/text_generator.h"

namespace headroom::api {

// At most one, and none while another call of the session runs: what is kept is in the session's budget. Thread-safe.
class KeptGenerator {
 public:
  KeptGenerator() = default;
  KeptGenerator(const KeptGenerator&) = delete;
  KeptGenerator& operator=(const KeptGenerator&) = delete;
  ~KeptGenerator();

  // Frees what is kept; a call that is generating keeps its own. While a SessionShare exists.
  void release();

 private:
  friend class OtherCall;
  friend class GenerateCall;
  std::unique_ptr<TextGenerator> begin_call();
  void end_call(std::unique_ptr<TextGenerator> generator);

  std::mutex mutex_;
  int calls_ = 0;                             // of the session, that have not ended
  std::unique_ptr<TextGenerator> generator_;  // null if nothing is kept
};

// A call of a session that does not generate, from its start to its end. Made after the call's SessionShare.
class OtherCall {
 public:
  explicit OtherCall(KeptGenerator& kept);
  OtherCall(const OtherCall&) = delete;
  OtherCall& operator=(const OtherCall&) = delete;
  ~OtherCall() { kept_.end_call(nullptr); }

 private:
  KeptGenerator& kept_;
};

// A call of generate(): has the kept generator, or a fresh one if there is none or another call has it, and gives it
// back unless another call of the session runs then. Made after the call's SessionShare.
class GenerateCall {
 public:
  explicit GenerateCall(KeptGenerator& kept);
  GenerateCall(const GenerateCall&) = delete;
  GenerateCall& operator=(const GenerateCall&) = delete;
  ~GenerateCall() { kept_.end_call(std::move(generator_)); }

  TextGenerator& generator() { return *generator_; }

 private:
  KeptGenerator& kept_;
  std::unique_ptr<TextGenerator> generator_;
};

}  // namespace headroom::api
