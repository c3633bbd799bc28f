print('other')
