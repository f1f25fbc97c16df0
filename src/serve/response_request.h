// Reads a request of OpenAI's /v1/responses as a chat.
#pragma once

#include "serve/text_request.h"

namespace headroom {

// Requests share no state, so references to an earlier response are refused. The answer repeats fields of the request,
// but not instructions and tools if together they have more than this many bytes.
inline constexpr size_t kMostRepeated = 4096;

// Throws ApiError(400).
TextRequest read_response_request(const OrderedJson& body, int64_t vocab);

}  // namespace headroom
