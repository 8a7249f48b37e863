"""Direct Vulkan through the PyPI package `vulkan`. Nothing else imports that package."""
