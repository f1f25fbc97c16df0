// What a client asks of /v1/embeddings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "generate/scheduler.h"
#include "serve/text_request.h"

namespace headroom {

struct EmbeddingRequest {
  std::string model;                // empty: not named
  std::vector<PromptInput> inputs;  // at least one
  bool base64 = false;
  int64_t dimensions = 0;  // of each embedding
};

// Reads a parsed body. `hidden`: numbers of the model's hidden state. Throws ApiError(400).
EmbeddingRequest read_embedding_request(const OrderedJson& body, int64_t vocab, int64_t hidden);

// How the model's hidden states become one: as `1_Pooling/config.json` of sentence-transformers in the model's folder
// says, else the mean of an encoder's, that of a decoder's last token. Throws ApiError(400) for a way that is not
// built.
Pooling model_pooling(const std::filesystem::path& model, bool encoder);

}  // namespace headroom
