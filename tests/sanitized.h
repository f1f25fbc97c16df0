// HEADROOM_SANITIZED: whether a sanitizer's allocator replaces the program's; it holds more memory than is requested.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEADROOM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEADROOM_SANITIZED 1
#endif
#endif
#ifndef HEADROOM_SANITIZED
#define HEADROOM_SANITIZED 0
#endif
