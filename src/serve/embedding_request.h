// A request to /v1/embeddings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "generate/scheduler.h"
#include "serve/text_request.h"

namespace headroom {

struct EmbeddingRequest {
  std::string model;                // empty: not given
  std::vector<PromptInput> inputs;  // at least one
  bool base64 = false;
  int64_t dimensions = 0;  // numbers per embedding
};

// Reads a parsed body. `hidden`: the size of the model's hidden state. Throws ApiError(400).
EmbeddingRequest read_embedding_request(const OrderedJson& body, int64_t vocab, int64_t hidden);

// How the model's hidden states are pooled: by `1_Pooling/config.json` of sentence-transformers in the model's folder,
// else the mean for an encoder and the last token for a decoder. Throws ApiError(400) for an unsupported pooling.
Pooling model_pooling(const std::filesystem::path& model, bool encoder);

}  // namespace headroom
