"""`AsyncMemory` and its sessions: the sync names, awaited, for asyncio programs.

    from inmind import AsyncMemory

    async with AsyncMemory.open() as memory:
        session = await memory.session("deploy-42", resource="ada")
        prompt = await session.prepare([{"role": "user", "content": "Add a hero section to it"}])
        for entity in await session.entities:
            print(entity)

Every method is awaited, and so is every property that reads the store. Properties that read nothing are not
(`session.id`, `memory.home`). `id in memory` becomes `await memory.contains(id)`. Calls return the same values as the
sync names, and wrappers if those return objects. `wrapper.sync` is the sync object: all behaviour is implemented
there. An AsyncMemory belongs to no particular event loop: several loops may use it, each in its own thread.
"""
