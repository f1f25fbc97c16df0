// The request of OpenAI's /v1/responses, read as a chat.
#pragma once

#include "serve/text_request.h"

namespace headroom {

// No state is kept between requests: what refers to an earlier response is refused. Of the fields that the answer
// repeats, instructions and tools are left out where they have more than this many bytes together.
inline constexpr size_t kMostRepeated = 4096;

// Throws ApiError(400).
TextRequest read_response_request(const OrderedJson& body, int64_t vocab);

}  // namespace headroom
